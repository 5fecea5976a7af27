"""`orc config`: the configuration and its origins. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

CONFIG_COMMANDS = {
    "show": "Show every setting and where it comes from.",
    "check": "Check the configuration files and variables.",
    "trust": "Agree to what the repository's file asks for.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc config show
  orc config check
  orc config trust"""


@click.group("config", cls=LazyGroup, helps=CONFIG_COMMANDS, folder="config", epilog=EXAMPLE)
def command() -> None:
    """Show, check and trust the configuration.

    A flag wins over an ORC_ variable, a variable over the repository's .orc.toml, and that over the user's file,
    ~/.config/orc/config.toml. `orc schema config` prints the schema of both files.
    """
