"""Compares the snapshots of a store with its journals, for whoever checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.engine.journal import fold
from agent_orchestrator.engine.snapshots import same_states
from agent_orchestrator.systems import SYSTEMS, find_system

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator


def drop_wrong_snapshots(orchestrator: Orchestrator) -> list[str]:
    """Fold every run that has a snapshot with and without it, drop those that differ, and say so, a sentence each."""
    store, kept, dropped = orchestrator.store, orchestrator.store.snapshots, []
    if kept is None:
        return []
    for run in store.runs():
        if run.system not in SYSTEMS or kept.read(run.id) is None:
            continue
        system = find_system(run.system)
        quick = fold(store, system, run)
        if quick.since and not same_states(system, quick.state, fold(store, system, run, quick.seq).state):
            kept.drop(run.id)
            dropped.append(f"the snapshot of run {run.id} was not what its journal says: removed, the journal alone counts")
    return dropped
