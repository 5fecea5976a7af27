"""`orc phases`: task documents executed phase by phase. A file per command, loaded when it is used."""

from __future__ import annotations

from importlib import import_module

import click

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


class PhasesCommands(click.Group):
    """Names and one-line helps are known without loading any command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order in which a person meets them."""
        return list(PHASES_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one command."""
        if cmd_name not in PHASES_COMMANDS:
            return None
        made: click.Command = import_module(f"agent_orchestrator.surfaces.cli.commands.phases_{cmd_name}").command
        return made

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `orc phases --help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(PHASES_COMMANDS.items()))


@click.group("phases", cls=PhasesCommands, epilog=EXAMPLE)
def command() -> None:
    """Execute a task document, phase by phase.

    Tasks are iterated until their criteria are met, a supervisor looks before and after each, every task ends in a
    checkpoint. `orc pause`, `orc resume`, `orc rewind` and `orc abort` work on these runs, too.
    """
