"""`orc store`: the store that runs are kept in. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

STORE_COMMANDS = {
    "init": "Prepare a database for runs.",
    "check": "Check the store that runs are kept in.",
    "migrate": "Bring a database to this version's schema.",
    "copy": "Copy all runs to another store.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc store check"""


@click.group("store", cls=LazyGroup, helps=STORE_COMMANDS, folder="store", epilog=EXAMPLE)
def command() -> None:
    """Prepare, check, migrate and copy the store of runs.

    Runs are kept in a file of the repository, or in a PostgreSQL database that several machines share: `--store`, ORC_STORE or
    [store] of the configuration names it. `orc help postgres` has the page.
    """
