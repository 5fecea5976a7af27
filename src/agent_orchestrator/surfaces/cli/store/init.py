"""`orc store init`: a database that runs can be kept in."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc store init --store postgresql://orc@db.example.com/orc
orc store init --placing dbos
"""


@make_command("init", EXAMPLE)
@click.option("--placing", type=click.Choice(["table", "dbos"]), help="What hands queued runs to workers (table).")
def command(repo: str | None, as_json: bool, placing: str | None) -> int:
    """Prepare a database for runs.

    Everything is put into the schema `orc` of the PostgreSQL database that --store, ORC_STORE or [store] names. One that is
    prepared already stays as it is. --placing chooses, for all workers, between our own table and queues of DBOS, in a schema
    `dbos`; it may be chosen again while there are no workers.
    """
    from agent_orchestrator.surfaces.cli.store.shared import install_schema

    with open_orchestrator(repo) as orchestrator:
        return install_schema(orchestrator, as_json=as_json, placing=placing)
