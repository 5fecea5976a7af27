"""Runs with the real `claude`, `codex`, `gemini` and `opencode`, as `make test` installed them, and a scripted model.

Nothing of the environment of whoever runs the tests reaches a client: PATH is the system's, HOME is new, keys are
dummies and the model is on 127.0.0.1. A client that is installed on the machine is never used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_orchestrator.config import load_settings
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.engine import Silent
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
from agent_orchestrator.runs.workflow.start import start_workflow
from agent_orchestrator.systems.workflow.events import AgentFinished
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.model_cast import Cast, Part
from agent_orchestrator.testing.model_server import Behaviour, Lane, ModelServer

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = (ROOT / ".cache" / "clients" / "node_modules").resolve()
PATIENCE_S = 180.0

BINARIES = {
    "claude": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "gemini": ".bin/gemini",
    "opencode": "opencode-linux-*/bin/opencode",
}
MODELS = {
    "claude": "claude-sonnet-4-5",
    "codex": "gpt-5.5",
    "gemini": "gemini-2.5-flash",
    "opencode": "anthropic/claude-sonnet-4-5",
}
ALONE = {
    # Whatever a client would like to talk to beside its model is refused: nothing leaves the machine.
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
    "ANTHROPIC_API_KEY": "sk-ant-dummy-key-of-a-test",
    "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy-token-of-a-test",
    "CODEX_API_KEY": "dummy-key-of-a-test",
    "GEMINI_API_KEY": "dummy-key-of-a-test",
}
"""The settings that keep a client on this machine: dummy keys, and a proxy that nobody listens on."""
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "maxAttempts": 1},
    "privacy": {"usageStatisticsEnabled": False},
}
OPENCODE_MODELS = {
    "anthropic": {
        "id": "anthropic",
        "name": "Anthropic",
        "env": ["ANTHROPIC_API_KEY"],
        "npm": "@ai-sdk/anthropic",
        "models": {
            "claude-sonnet-4-5": {
                "id": "claude-sonnet-4-5",
                "name": "Claude Sonnet 4.5",
                "release_date": "2025-09-29",
                "attachment": True,
                "reasoning": True,
                "temperature": True,
                "tool_call": True,
                "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
                "limit": {"context": 200_000, "output": 64_000},
            }
        },
    }
}
"""The one model that is asked for: the list that comes with opencode costs it seconds of computing at every start."""
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

ONE_STEP = "name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md}\n"


def binary(client: str) -> Path | None:
    """The client's own program, whatever npm did with its launcher."""
    return next(iter(sorted(INSTALLED.glob(BINARIES[client]))), None)


def report(**fields: Any) -> dict[str, Any]:
    """A structured answer: every field is there."""
    empty = dict.fromkeys(("artifacts", "metrics", "logs", "files_modified", "learnings"))
    return {"status": "COMPLETED", "summary": "done", **empty, **fields}


class Rig:
    """A repository with a configuration that sends every client to the scripted model."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.model = model
        self.repo, self.home = folder / "repo", folder / "home"
        for made in (self.repo, self.home / ".codex", folder / "tmp"):
            made.mkdir(parents=True, exist_ok=True)
        self.environ = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            # Not above HOME: there codex makes no helper for its sandbox, which then fails with a bubblewrap before 0.9.
            "TMPDIR": str(folder / "tmp"),
            "ORC_TRUSTED_PATHS": str(folder),
            **ALONE,
        }
        subprocess.run(["git", "init", "-q", str(self.repo)], check=True, env=self.environ)
        (self.repo / "prompt.md").write_text("Write the file.\n")
        self.workflow(ONE_STEP)
        self._tables: dict[str, list[str]] = {}
        self.lanes: dict[str, Lane] = {}

    def workflow(self, text: str) -> None:
        """Write the workflow that will be run."""
        (self.repo / "workflow.yaml").write_text(text)

    def lane(self, client: str, script: Sequence[Behaviour], *more: str) -> Lane:
        """From now on the client's model behaves so; `more` are lines of its settings."""
        return self.play(client, Lane(script), *more)

    def cast(self, client: str, *parts: Part) -> Cast:
        """The same with a model that tells by the prompts which part it plays."""
        cast = Cast(parts)
        self.play(client, cast)
        return cast

    def play(self, client: str, lane: Lane, *more: str) -> Lane:
        """Sends the client to this lane."""
        url = self.model.add(f"{self.repo.parent.name}-{client}", lane)
        lines = [f'binary = "{binary(client)}"', f'model = "{MODELS[client]}"', *more]
        if client == "gemini":
            (self.home / ".gemini").mkdir(exist_ok=True)
            (self.home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI_SETTINGS))
            lines += [f'env = {{ GOOGLE_GEMINI_BASE_URL = "{url}", NO_COLOR = "1" }}']
        elif client == "opencode":
            models = self.home / "models.json"
            models.write_text(json.dumps(OPENCODE_MODELS))
            asked = {"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}, "snapshot": False}
            env = {"OPENCODE_CONFIG_CONTENT": json.dumps(asked), "OPENCODE_MODELS_PATH": str(models)}
            env |= {f"OPENCODE_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")}
            lines += [f"env = {{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in env.items())} }}"]
        elif client == "claude":
            quiet = 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"'
            lines += [f'env = {{ ANTHROPIC_BASE_URL = "{url}", {quiet} }}']
        else:
            provider = (
                f'model_providers.scripted={{name="scripted",base_url="{url}/v1",env_key="CODEX_API_KEY",wire_api="responses",'
                "request_max_retries=0,stream_max_retries=0}"
            )
            words = ["-c", "analytics.enabled=false", "--disable", "plugins", "-c", 'model_provider="scripted"', "-c", provider]
            own: list[str] = next((json.loads(line.partition("=")[2]) for line in more if line.startswith("args")), [])
            lines = [line for line in lines if not line.startswith("args")]
            lines += [f"args = {json.dumps([*words, *own])}"]
        self._tables[client] = lines
        text = "\n".join(f"[agents.{name}]\n" + "\n".join(lines) + "\n" for name, lines in self._tables.items())
        (self.repo / ".orc.toml").write_text(text)
        self.lanes[client] = lane
        return lane

    def check_answers(self) -> None:
        """No script answered what its schema does not allow."""
        faults = [fault for lane in self.lanes.values() for fault in lane.faults]
        for lane in self.lanes.values():
            lane.faults.clear()
        assert not faults, "\n".join(faults)

    def run(self, **options: Any) -> tuple[Summary, str]:
        """Runs the workflow in this process to its end, or until it is parked."""
        with self.orchestrator() as orchestrator:
            settings = orchestrator.settings
            given = WorkflowOptions(workflow=str(self.repo / "workflow.yaml"), **{"max_attempts": 1, **options})
            prepared = prepare(given, self.repo, settings.environ, load_agents(settings))
            started = start_workflow(orchestrator, prepared.spec)
            try:
                return orchestrator.drive_owned(started.run, Silent(), lambda driver: not driver.is_parked()), started.run.id
            finally:
                started.owner.release()

    def orchestrator(self) -> Orchestrator:
        return Orchestrator(settings=load_settings(str(self.repo), self.environ))

    def steps(self, run: str) -> dict[str, Any]:
        """Return what `orc show --json` says about the steps beyond the state file."""
        with self.orchestrator() as orchestrator:
            folded = orchestrator.fold(orchestrator.find(run))
            details: dict[str, Any] = folded.system.details(folded.state)["steps"]
            return details

    def launches(self, run: str, step: str = "work") -> list[dict[str, Any]]:
        """The step's agent launches, oldest first."""
        found: list[dict[str, Any]] = self.steps(run)[step]["launches"]
        return found

    def failures(self, run: str) -> list[Failure]:
        """Return the failures of launches, as the journal has them."""
        with self.orchestrator() as orchestrator:
            rows = orchestrator.store.rows(RunId(run))
            events = [event for _, _, body in rows for event in decode_events(WORKFLOW, body)]
        return [event.failure for event in events if isinstance(event, AgentFinished) and event.failure is not None]

    def state(self, run: str) -> dict[str, Any]:
        """The state file."""
        read: dict[str, Any] = json.loads((self.repo / ".agents" / "runs" / run / "run_state.json").read_text())
        return read

    def usage(self, run: str, agent: str | None = None) -> list[Usage]:
        """The ledger's lines of a run."""
        with self.orchestrator() as orchestrator:
            return [row.usage for row in orchestrator.store.usage(RunId(run)) if agent in (None, row.agent)]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """An `orc` process with nothing of our environment."""
        command = [sys.executable, "-m", "agent_orchestrator.cli", *arguments]
        environ = {**self.environ, "PYTHONPATH": str(ROOT / "src")}
        return subprocess.Popen(command, env=environ, cwd=self.repo, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def orc(self, *arguments: str, code: int = 0) -> str:
        """The same, to its end."""
        process = self.start(*arguments)
        try:
            said, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
        assert process.returncode == code, said
        return said


def counts(usages: Sequence[Usage]) -> dict[str, int]:
    """Return the sum of the usages."""
    return {name: sum(getattr(usage, name) or 0 for usage in usages) for name in COUNTED}


def charged(lane: Lane) -> dict[str, int]:
    """Return what the scripted model put on the bill."""
    return counts([lane.charged])


def until(condition: Callable[[], object]) -> None:
    """Waits for something that another process does."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError("it never happened")
        time.sleep(0.02)


def clients_of(folder: Path) -> list[int]:
    """Processes of clients that work in a folder, by their working directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(INSTALLED).encode() in (entry / "cmdline").read_bytes():
                found += [int(entry.name)] if (entry / "cwd").readlink().is_relative_to(folder) else []
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]
