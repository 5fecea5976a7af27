"""The schema of a database, made or brought to this version: `orc store init` and `migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.stores import install_store
from agent_orchestrator.surfaces.cli.screen import print_json

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator


def install_schema(orchestrator: Orchestrator, *, as_json: bool, migrate: bool = False, placing: str | None = None) -> int:
    """Make the schema of a database, or, to migrate, bring an older one to this version; say what was done."""
    address = orchestrator.address
    if address is None:
        own = orchestrator.settings.folder / "orc.db"
        raise Refused(why=f"The runs are in {own}, which needs no preparation; name a database with --store.")
    before = install_store(address, migrate=migrate)
    version, _ = orchestrator.store.health()
    chosen = _place_by(address.url, placing)
    changed = before != version
    if as_json:
        print_json({"store": str(address), "before": before, "version": version, "changed": changed, "placing": chosen})
        return 0
    verb = "is prepared" if not changed or not before else f"was migrated from schema {before}"
    click.echo(f"{address} {verb}: schema {version}; this repository is {address.repository}.")
    if placing is not None:
        click.echo(f"Its queued runs are placed by {'queues of DBOS' if chosen == 'dbos' else 'its own table'}.")
    return 0


def _place_by(url: str, placing: str | None) -> str:
    """Choose what places the runs of a database, where asked to; returns the choice that it has."""
    from agent_orchestrator.cluster.placing import choose_placing
    from agent_orchestrator.store.postgres.cluster import Cluster

    cluster = Cluster(url)
    try:
        if placing is not None:
            choose_placing(cluster, placing)
        return cluster.read_placing()
    finally:
        cluster.close()
