"""`orc github`: runs of what stands on a server. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

GITHUB_COMMANDS = {
    "watch": "Make a run and a pull request of each issue with a label.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc github watch --label orc -- --check "make test\""""


@click.group("github", cls=LazyGroup, helps=GITHUB_COMMANDS, folder="github", epilog=EXAMPLE)
def command() -> None:
    """Make runs of issues on GitHub, with your own `gh`."""
