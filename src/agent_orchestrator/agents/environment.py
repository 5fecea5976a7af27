"""The environment and the prompt that an agent gets: pure functions of its task.

Every program can be an agent because this is all it needs to know; the names are a public contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_orchestrator.agents.adapter import AgentTask
from agent_orchestrator.core.ids import as_variable
from agent_orchestrator.core.markdown import fenced

NESTED = frozenset(
    {
        "CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_REMOTE_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE",
        "OLDPWD",
    }
)  # fmt: skip
"""Marks that an agent CLI leaves for its children: with them another one refuses to start or joins the wrong session.

Names, not a prefix: CLAUDE_CODE_USE_BEDROCK, CLAUDE_CODE_OAUTH_TOKEN and their like are settings that agents need.
"""

OWN = frozenset(
    {
        "RUN_ID", "STEP_ID", "AGENT_ID", "ITERATION", "STEP_ATTEMPT", "REPO_DIR", "PROMPT_PATH", "REPORT_PATH", "ARTIFACTS_DIR",
        "FEEDBACK_PATH", "MANUAL_RESULT_PATH", "ORC_LAUNCH",
    }
)  # fmt: skip
"""Variables that only orc can know: with another value an agent would report to the wrong place, or under the wrong name."""

SERVER_NAME, SERVER_URL, SERVER_KEY = "orc_run", "ORC_MCP_URL", "ORC_MCP_KEY"
"""The run's MCP server: its name among those of a client, and the variables with its address and the launch's key."""
SERVER_TOOLS = ("note_progress", "ask_person", "read_feedback")

REFUSED_TITLE = "## Tools that were refused before"
FEEDBACK_TITLE = "## What earlier iterations and attempts ran into"

_OPTIONAL = frozenset({"STEP_MODEL", "FEEDBACK_PATH", "MANUAL_RESULT_PATH"})
_DEP = re.compile(r"DEP_[A-Z0-9_]+_ARTIFACT(?:S|_\d+)\Z")
_NAME = re.compile(r"(?<!\$)\{([^{}\s]+)\}")


def build_environment(task: AgentTask) -> dict[str, str]:
    """Return the variables of the agent's process: the inherited ones, the contract's, and those of the effect last."""
    effect = task.effect
    env = {name: value for name, value in task.inherited_env.items() if not _is_foreign(name)}
    env |= {
        "RUN_ID": task.run,
        "STEP_ID": effect.unit,
        "AGENT_ID": effect.role,
        "ITERATION": str(effect.iteration),
        "STEP_ATTEMPT": str(effect.attempt),
        "REPO_DIR": str(task.workdir),
        "PROMPT_PATH": str(task.prompt),
        "REPORT_PATH": str(task.report),
        "ARTIFACTS_DIR": str(task.artifacts_dir),
        "PWD": str(task.workdir),
    }
    if effect.agent.model is not None:
        env["STEP_MODEL"] = effect.agent.model
    if task.feedback is not None:
        env["FEEDBACK_PATH"] = str(task.feedback)
    if task.answer is not None:
        env["MANUAL_RESULT_PATH"] = str(task.answer)
    if task.server is not None:
        env |= {SERVER_URL: task.server.url, SERVER_KEY: task.server.key}
    for unit, artifacts in effect.inputs.items():
        paths = [str(task.workdir / artifact) for artifact in artifacts]
        prefix = f"DEP_{as_variable(unit)}_ARTIFACT"
        env |= {f"{prefix}_{number}": path for number, path in enumerate(paths)}
        env[f"{prefix}S"] = ",".join(paths)
    return env | effect.env


def render_prompt(text: str, variables: Mapping[str, str], feedback: Sequence[Mapping[str, Any]] = ()) -> str:
    """Fill in `{NAME}` for names that are known, and tell at the prompt's end what went wrong before.

    `${NAME}` is left alone: it is a shell's, not ours. Values are not looked at again, so they cannot nest.
    """
    filled = _NAME.sub(lambda match: variables.get(match[1], match[0]), text)
    if not feedback:
        return filled
    told = "\n".join(_tell_entry(entry) for entry in feedback)
    return f"{filled.rstrip()}\n\n{FEEDBACK_TITLE}\n\nOldest first; deal with the last one.\n\n{told}"


def tell_refused(refused: Sequence[str]) -> str:
    """Return the closing section about tools that were refused before: an agent that does not know tries them again."""
    told = "\n".join(f"- {one}" if "\n" not in one else f"- {one.splitlines()[0]} …" for one in refused)
    return f"{REFUSED_TITLE}\n\nNobody is there to allow them now; do without.\n\n{told}\n"


def tell_steering(words: Sequence[str]) -> str:
    """Return the opening section with the words of people."""
    return "".join(f"## First of all\n\n{text.rstrip()}\n\n" for text in words).rstrip() + "\n"


def _is_foreign(name: str) -> bool:
    return name in NESTED or name in _OPTIONAL or (name.startswith("DEP_") and _DEP.match(name) is not None)


def _tell_entry(entry: Mapping[str, Any]) -> str:
    title = ", ".join(f"{key} {entry[key]}" for key in ("step", "iteration", "attempt") if isinstance(entry.get(key), (str, int)))
    lines = [f"### {title or 'Earlier'}", ""]
    for key, value in entry.items():
        if key not in {"step", "iteration", "attempt"} and value not in (None, "", [], {}):
            lines += _lines(key.replace("_", " "), value)
    return "\n".join(lines) + "\n"


def _lines(name: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in _lines(f"{name} {key.replace('_', ' ')}", inner)]
    if isinstance(value, list | tuple) and all(isinstance(item, str) and "\n" not in item for item in value):
        return [f"- {name}:", *(f"  - {item}" for item in value)]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if "\n" not in text.strip():
        return [f"- {name}: {text.strip()}"]
    return [f"- {name}:", "", fenced(text), ""]
