"""`orc store migrate`: the schema of this version."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc store migrate --store postgresql://orc@db.example.com/orc
"""


@make_command("migrate", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Bring a database to this version's schema.

    In one transaction; refused while a process drives runs in it. The repository's own store is migrated when it is opened.
    """
    from agent_orchestrator.surfaces.cli.store.shared import install_schema

    with open_orchestrator(repo) as orchestrator:
        return install_schema(orchestrator, as_json=as_json, migrate=True)
