"""The workers and queues of the databases that repositories share; a repository with a store of its own has none."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.cli.commands.workers import worker_facts


def list_workers(orchestrator: Orchestrator) -> dict[str, Any] | None:
    """Return who drives runs of the repository's database, and what waits there; None for a store of its own."""
    if orchestrator.address is None:
        return None
    from agent_orchestrator.store.postgres.cluster import Cluster

    cluster = Cluster(orchestrator.address.url)
    try:
        workers, queues = cluster.list_workers(), cluster.list_queues()
    finally:
        cluster.close()
    facts = {"workers": [worker_facts(one) for one in workers], "queues": [queue._asdict() for queue in queues]}
    return {"store": str(orchestrator.address), **facts}
