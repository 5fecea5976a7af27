"""The ways in which runs come to a worker: `port.py` says what is asked of one, a file each is one. A whole database has one."""

from __future__ import annotations

from agent_orchestrator.cluster.placing.port import DBOS, Placing, Seat
from agent_orchestrator.cluster.placing.table import TablePlacing
from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.store.postgres.cluster import Cluster

INSTALL = "pip install 'orc-agents[dbos]'"


def make_placing(chosen: str, seat: Seat) -> Placing:
    """Return what places runs on a worker; raise Unavailable where its packages are not installed."""
    if chosen != DBOS:
        return TablePlacing(seat)
    try:
        from agent_orchestrator.cluster.placing.dbos import DbosPlacing
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return DbosPlacing(seat)


def choose_placing(cluster: Cluster, chosen: str) -> None:
    """Choose what places the runs of a database, and prepare it; raise Refused while workers go by another choice."""
    if chosen == DBOS:
        try:
            from agent_orchestrator.cluster.placing.dbos import prepare_database
        except ModuleNotFoundError as error:
            raise _missing(error) from error
        prepare_database(cluster.address)
    if not cluster.choose_placing(chosen):
        why = f"Workers of {cluster.address.shown} take runs by its other placing; drain them first (`orc workers`)."
        raise Refused(why=why)


def _missing(error: ModuleNotFoundError) -> Unavailable:
    return Unavailable(detail=f"Runs of this store are placed by DBOS, and {error.name} is not installed: {INSTALL}.")
