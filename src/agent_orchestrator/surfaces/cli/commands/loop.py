"""`orc loop`: loops that iterate until a check passes. A file per command, loaded when it is used."""

from __future__ import annotations

from importlib import import_module

import click

LOOP_COMMANDS = {
    "run": "Start a loop and stay with it.",
    "list": "List the loops.",
    "status": "Show how a loop stands.",
    "pause": "Pause a loop when its iteration is over.",
    "resume": "Go on with a loop, or with its work.",
    "abort": "Stop a loop for good.",
    "attach": "Follow what a loop does and says.",
    "logs": "Print what a loop's agent wrote.",
    "steer": "Tell a loop's agent something, once.",
    "best": "Put the best iteration's tree on a branch.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc loop run "fix the failing tests" --until "pytest -q" --agent claude
  orc loop status
  orc loop pause && orc loop resume"""


class LoopCommands(click.Group):
    """Names and one-line helps are known without loading any command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order in which a person meets them."""
        return list(LOOP_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one command."""
        if cmd_name not in LOOP_COMMANDS:
            return None
        made: click.Command = import_module(f"agent_orchestrator.surfaces.cli.commands.loop_{cmd_name}").command
        return made

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `orc loop --help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(LOOP_COMMANDS.items()))


@click.group("loop", cls=LoopCommands, epilog=EXAMPLE)
def command() -> None:
    """Iterate until a check passes.

    An agent works on one task, iteration after iteration, each with a fresh prompt, until a command that is run for it
    passes. LOOP may be left out when one loop is active.
    """
