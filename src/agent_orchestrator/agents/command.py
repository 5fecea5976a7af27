"""`command`: any program, with the prompt on its standard input and the contract in its environment.

Options: `argv`, run as it stands and never by a shell. A report is optional unless the step needs its words.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending, Plan, Task, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.judging import judge
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import AgentMissing, InvalidValue


class CommandAgent:
    """An adapter for plain programs."""

    name = "command"
    appends_feedback = True

    def preflight(self, choice: AgentChoice) -> None:
        """A program given by name must be on the PATH; one in the working tree can be looked for only there, at the start."""
        program = _argv(choice)[0]
        if "/" not in program:
            if shutil.which(program) is None:
                raise AgentMissing(agent=program, why="it was not found on the PATH")
        elif Path(program).is_absolute():
            if not Path(program).is_file():
                raise AgentMissing(agent=program, why="there is no such file")
            if not os.access(program, os.X_OK):
                raise AgentMissing(agent=program, why="it is not executable; `chmod +x` makes it so")

    def plan(self, task: Task) -> Plan:
        """The command, the prompt as its input."""
        return Plan(argv=_argv(task.effect.agent), env=build_environment(task), stdin=task.prompt)

    def judge(self, task: Task, ending: Ending) -> Verdict:
        """By exit code and report."""
        return judge(task, ending)


def _argv(choice: AgentChoice) -> tuple[str, ...]:
    argv = choice.options.get("argv")
    if (
        not isinstance(argv, list | tuple)
        or not argv
        or not argv[0]
        or not all(isinstance(word, str) and "\0" not in word for word in argv)
    ):
        raise InvalidValue(what="The agent's command", value=argv, expected="a list of strings, the program first")
    return tuple(argv)


AGENT = CommandAgent()
