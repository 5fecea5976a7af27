"""`orc swarm`: beads dispatched to agents. A file per command, loaded when it is used."""

from __future__ import annotations

from importlib import import_module

import click

SWARM_COMMANDS = {
    "dispatch": "Dispatch one bead to an agent.",
    "run": "Work through a file of beads.",
    "init": "Write schemas and scripts into a workspace.",
    "status": "Show the beads.",
    "watch": "Follow a run until it ends.",
    "logs": "Print what a bead's agent wrote.",
    "attach": "Join a bead's tmux session, or follow its output.",
    "retry": "Try failed beads again.",
    "stop": "Stop a bead or a run.",
    "validate": "Validate records against their schemas.",
    "analyze": "Report on all runs: figures, comparisons, advice.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc swarm dispatch bd-101 ~/project claude:sonnet "fix the login bug" bug-fix
  orc swarm run beads.jsonl --agent claude --max-agents 8 --branch swarm
  orc swarm analyze --since 2026-02-11"""


class SwarmCommands(click.Group):
    """Names and one-line helps are known without loading any command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order in which a person meets them."""
        return list(SWARM_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one command."""
        if cmd_name not in SWARM_COMMANDS:
            return None
        made: click.Command = import_module(f"agent_orchestrator.surfaces.cli.commands.swarm_{cmd_name}").command
        return made

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `orc swarm --help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SWARM_COMMANDS.items()))


@click.group("swarm", cls=SwarmCommands, epilog=EXAMPLE)
def command() -> None:
    """Dispatch beads to agents.

    A bead is one task for one agent. Every attempt leaves a run record and a result record under `state/` of the
    workspace, which is the current directory unless --workspace names another.
    """
