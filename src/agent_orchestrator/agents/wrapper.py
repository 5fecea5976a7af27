"""`wrapper`: a program that takes the step by command-line flags and answers with a report file.

Options: `path` (absolute), `args` (given after the flags). A path ending in .py runs with an interpreter of its own: that of its
first line if it is executable, else the `python3` of the run's PATH; never ours, whose packages are none of its business.

Instead of `path` there may be a `template`: the words of a command in which `{run_id}` and the other names of `FILLED` are
filled in. The line was split before, so what is filled in may have spaces.
"""

from __future__ import annotations

import os
import shutil
import string
import sys
from collections.abc import Mapping
from pathlib import Path

from agent_orchestrator.agents.adapter import AgentTask, Ending, Invocation, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.report import ask_for_report
from agent_orchestrator.agents.verdict import judge
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.limits import PROGRAM_IDLE_S
from agent_orchestrator.errors import AgentMissing, InvalidValue, MissingPath

FILLED = ("run_id", "step_id", "agent", "prompt", "repo", "report", "attempt", "manual_input")
"""The names in braces that a template may have."""


def fill_word(word: str, values: Mapping[str, str]) -> str:
    """Fill in the names of a template's word; `{{` and `}}` are braces. Raises InvalidValue."""
    try:
        pieces = list(string.Formatter().parse(word))
    except ValueError as error:
        raise InvalidValue(what="--command-template", value=word, expected=f"names in braces ({error})") from None
    filled = ""
    for text, name, form, conversion in pieces:
        filled += text
        if name is None:
            continue
        if name not in values or form or conversion:
            known = ", ".join(f"{{{one}}}" for one in FILLED)
            raise InvalidValue(
                what="--command-template", value=word, expected=f"a command with no other names in braces than {known}"
            )
        filled += values[name]
    return filled


class WrapperAgent:
    """An adapter for wrappers."""

    name = "wrapper"
    appends_feedback = True
    idle_timeout_s = PROGRAM_IDLE_S

    def preflight(self, choice: AgentChoice) -> None:
        """Check that the wrapper is a file that can be run."""
        if (words := _template(choice)) is not None:
            for word in words:
                fill_word(word, dict.fromkeys(FILLED, ""))
            if shutil.which(words[0]) is None:
                raise AgentMissing(agent=words[0], why="it was not found on the PATH, or is not executable")
            return
        path, _ = _options(choice)
        if not path.exists():
            raise MissingPath(what="The wrapper", path=path)
        if not path.is_file():
            raise AgentMissing(agent=path, why="it is not a file")
        if path.suffix == ".py":
            if not os.access(path, os.R_OK):
                raise AgentMissing(agent=path, why="it cannot be read; check its permissions")
        elif not os.access(path, os.X_OK):
            raise AgentMissing(agent=path, why="it is not executable; `chmod +x` makes it so")

    def ask_for_report(self, task: AgentTask) -> str:
        """Ask for a file if the prompt is not a person's, which a wrapper may take as it likes."""
        return ask_for_report(task, task.report) if task.effect.prompt_text is not None else ""

    def plan(self, task: AgentTask) -> Invocation:
        """Return the wrapper with the flags of the contract, then its own."""
        choice, env = task.effect.agent, _without_ours(build_environment(task))
        if (template := _template(choice)) is not None:
            values = _values(task)
            filled = tuple(fill_word(word, values) for word in template)
            return Invocation(argv=(*filled, *choice.options.get("args", ())), env=env, stdin=task.prompt)
        path, args = _options(choice)
        flags = {
            "--run-id": task.run,
            "--step-id": task.effect.unit,
            "--agent": task.effect.role,
            "--prompt": str(task.prompt),
            "--repo": str(task.workdir),
            "--report": str(task.report),
        }
        words = tuple(word for pair in flags.items() for word in pair)
        return Invocation(argv=(*_program(path, env), *words, *args), env=env, stdin=task.prompt)

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        """Judge by exit code and report."""
        return judge(task, ending)


def _template(choice: AgentChoice) -> tuple[str, ...] | None:
    words = choice.options.get("template")
    return tuple(words) if words else None


def _values(task: AgentTask) -> dict[str, str]:
    return {
        "run_id": task.run,
        "step_id": task.effect.unit,
        "agent": task.effect.role,
        "prompt": str(task.prompt),
        "repo": str(task.workdir),
        "report": str(task.report),
        "attempt": str(task.effect.attempt),
        "manual_input": str(task.answer) if task.answer is not None else "",
    }


def _options(choice: AgentChoice) -> tuple[Path, tuple[str, ...]]:
    path, args = choice.options.get("path"), choice.options.get("args", [])
    if not isinstance(path, str) or not path or "\0" in path:
        raise InvalidValue(what="The wrapper's path", value=path, expected="the path of a program")
    if not isinstance(args, list | tuple) or not all(isinstance(word, str) and "\0" not in word for word in args):
        raise InvalidValue(what="The wrapper's arguments", value=args, expected="a list of strings")
    return Path(path), tuple(args)


def _program(path: Path, env: dict[str, str]) -> tuple[str, ...]:
    """Return the words that run the wrapper."""
    if path.suffix != ".py" or (os.access(path, os.X_OK) and _names_interpreter(path)):
        return (str(path),)
    # Without any python3 ours is better than none.
    return (shutil.which("python3", path=env.get("PATH")) or sys.executable, str(path))


def _names_interpreter(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _without_ours(env: dict[str, str]) -> dict[str, str]:
    """Return the environment without the folder that our own package is imported from."""
    if "PYTHONPATH" not in env:
        return env
    ours = Path(__file__).resolve().parents[2]
    kept = [one for one in env["PYTHONPATH"].split(os.pathsep) if one and Path(one).resolve() != ours]
    rest = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": os.pathsep.join(kept)} if kept else rest


AGENT = WrapperAgent()
