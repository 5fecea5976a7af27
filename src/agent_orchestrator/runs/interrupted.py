"""Finishes what another process left half, before anything else is done with the run.

A killed one left a rewind, a fork, or a discard; one that has just ended a run still commits its work, and is given the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.runs.departure import wait_until_left
from agent_orchestrator.runs.discard import finish_discard, is_under_way
from agent_orchestrator.runs.works import find_works

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


def finish_interrupted(orchestrator: Orchestrator, run: StoredRun) -> StoredRun:
    """Finish what was begun with a run that nobody drives; returns the run as it is then. Raises RunBusy while somebody does."""
    wait_until_left(orchestrator, run)
    if not _is_interrupted(orchestrator, run):
        return run
    owner = orchestrator.own(run.id)
    try:
        return settle_interrupted(orchestrator, run)
    finally:
        owner.release()


def settle_interrupted(orchestrator: Orchestrator, run: StoredRun) -> StoredRun:
    """Finish what was begun with a run that the caller owns."""
    folded = orchestrator.fold(run)
    if folded.state.doing.returning is not None:
        orchestrator.settle(run)
        return orchestrator.find(run.id)
    if _is_discarded_half(orchestrator, run):
        finish_discard(orchestrator, run)
    return run


def _is_interrupted(orchestrator: Orchestrator, run: StoredRun) -> bool:
    return orchestrator.fold(run).state.doing.returning is not None or _is_discarded_half(orchestrator, run)


def _is_discarded_half(orchestrator: Orchestrator, run: StoredRun) -> bool:
    folded = orchestrator.fold(run)
    return bool(folded.state.doing.finish.discarded) and is_under_way(run, find_works(orchestrator, run, folded))
