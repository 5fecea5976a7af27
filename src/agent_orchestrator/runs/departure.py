"""The last moments of a process that has ended a run: its end is journaled, and the work is being committed.

Whoever follows the run knows its end at once and may ask for the work (`orc merge`) before that process has let go of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.runs.follow import LOOK_S, pause

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

LEAVING_MAX_S = 30
"""Committing a large tree takes seconds; whoever holds an ended run for longer does something else with it."""


def wait_until_left(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Wait until the process that ended a run has let go of it; return at once while the run goes on or nobody holds it."""
    if not run.summary.ended or orchestrator.owned(run.id) is not None:
        return
    for _ in range(round(LEAVING_MAX_S / LOOK_S)):
        if orchestrator.owner(run) is None:
            return
        pause()
