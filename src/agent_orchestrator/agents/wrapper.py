"""`wrapper`: a program that takes the step by command-line flags and answers with a report file.

Options: `path` (absolute), `args` (given after the flags). A path ending in .py is run by our interpreter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending, Plan, Task, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.judging import judge
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import AgentMissing, InvalidValue, MissingPath


class WrapperAgent:
    """An adapter for wrappers."""

    name = "wrapper"
    appends_feedback = True

    def preflight(self, choice: AgentChoice) -> None:
        """The wrapper must be a file that can be run."""
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

    def plan(self, task: Task) -> Plan:
        """The flags of the contract, then the wrapper's own."""
        path, args = _options(task.effect.agent)
        program = (sys.executable, str(path)) if path.suffix == ".py" else (str(path),)
        flags = {
            "--run-id": task.run,
            "--step-id": task.effect.unit,
            "--agent": task.effect.role,
            "--prompt": str(task.prompt),
            "--repo": str(task.workdir),
            "--report": str(task.report),
        }
        words = tuple(word for pair in flags.items() for word in pair)
        return Plan(argv=(*program, *words, *args), env=build_environment(task), stdin=task.prompt)

    def judge(self, task: Task, ending: Ending) -> Verdict:
        """By exit code and report."""
        return judge(task, ending)


def _options(choice: AgentChoice) -> tuple[Path, tuple[str, ...]]:
    path, args = choice.options.get("path"), choice.options.get("args", [])
    if not isinstance(path, str) or not path or "\0" in path:
        raise InvalidValue(what="The wrapper's path", value=path, expected="the path of a program")
    if not isinstance(args, list | tuple) or not all(isinstance(word, str) and "\0" not in word for word in args):
        raise InvalidValue(what="The wrapper's arguments", value=args, expected="a list of strings")
    return Path(path), tuple(args)


AGENT = WrapperAgent()
