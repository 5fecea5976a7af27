"""`orc phases`: task documents executed phase by phase. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

PHASES_COMMANDS = {
    "new": "Write a template of a task document.",
    "plan": "Show what a task document asks for.",
    "run": "Execute a task document and stay with it.",
    "status": "Show how a run of phases stands.",
    "skip": "Leave a task out, with what depends on it.",
    "retry": "Try a task again that failed or was skipped.",
    "check": "Let the supervisor look now.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc phases new task.md
  orc phases plan task.md
  orc phases run task.md --agent claude --max-cost '$10'"""


@click.group("phases", cls=LazyGroup, helps=PHASES_COMMANDS, folder="phases", epilog=EXAMPLE)
def command() -> None:
    """Execute a task document, phase by phase.

    Tasks are iterated until their criteria are met, a supervisor looks before and after each, every task ends in a
    checkpoint. `orc pause`, `orc resume`, `orc rewind` and `orc abort` work on these runs, too.
    """
