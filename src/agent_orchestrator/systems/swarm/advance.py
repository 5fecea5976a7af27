"""Says what follows by itself: the next start, or the end of the run. Asked until it is silent; one start at a time."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Ended, StopReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.swarm.events import (
    AttemptStarted,
    BeadQueued,
    ClosingStarted,
    MergeStarted,
    SavingStarted,
    SwarmEvent,
    VerificationStarted,
)
from agent_orchestrator.systems.swarm.state import SwarmState

FAILED_SHOWN = 5
BESIDE_MAX = 50


def advance(state: SwarmState, now_us: int) -> Sequence[SwarmEvent]:
    """The next facts, or none."""
    if not state.lifecycle.running:
        if state.lifecycle.phase is Phase.ABORTING and not state.doing.active:
            return [Ended(stop=StopReason.ABORTED, detail=state.lifecycle.detail)]
        return ()
    if state.due and (events := _go_on(state)):
        return events
    if state.merging and (events := _merge(state)):
        return events
    if not state.room:
        return ()
    bead = state.dag.peek() if not state.tripped and state.ended_as is None else None
    if bead is None:
        return () if len(state.doing) else [_end(state)]  # what is due and may not begin any more never does
    behind = state.holder(bead)
    if behind is not None:
        return [BeadQueued(bead=bead, behind=behind)]
    return [_start(state, bead, state.beads[bead].attempt + 1)]


def _go_on(state: SwarmState) -> Sequence[SwarmEvent]:
    """A bead that is in the middle of something comes before one that is not."""
    for bead, what in state.due.items():
        if what == "verify":
            return [VerificationStarted(bead=bead, effect=state.name_effect(bead, "verify"))]
        if what == "close":
            return [ClosingStarted(bead=bead, effect=state.name_effect(bead, "close"))]
        if state.room and not (state.tripped and state.is_untried(bead)):
            held = state.beads[bead]
            going_on = held.run is not None and held.result is None
            return [_start(state, bead, held.attempt if going_on else held.attempt + 1)]
    return ()


def _merge(state: SwarmState) -> Sequence[SwarmEvent]:
    """One merge at a time: each is made on what the one before it left."""
    bead = next(iter(state.merging))
    job = state.beads[bead].merge
    if job is None or state.doing.of(bead) is not None or bead in state.due:
        return ()
    if not job.saved:
        return [SavingStarted(bead=bead, effect=state.name_effect(bead, "save"))]
    return [MergeStarted(bead=bead, effect=state.name_effect(bead, "merge"))]


def _start(state: SwarmState, bead: str, attempt: int) -> AttemptStarted:
    repo = state.specs[bead].repo
    inside = [other for other in state.repos.get(repo, ()) if other != bead]
    beside = (*inside, *state.spec.beside)[:BESIDE_MAX]
    return AttemptStarted(bead=bead, effect=state.name_effect(bead, "agent", attempt), attempt=attempt, beside=beside)


def _end(state: SwarmState) -> Ended:
    """Nothing runs, nothing waits, nothing can start."""
    if state.ended_as is not None:
        stop, detail = state.ended_as
        return Ended(stop=stop, detail=detail)
    failed, total = state.failed, len(state.beads)
    if not failed and state.dag.finished == total:
        return Ended(stop=StopReason.COMPLETED)
    named = [f"{bead} ({why})" for bead, why in list(failed.items())[:FAILED_SHOWN]]
    detail = ", ".join(named) + (f" and {len(failed) - FAILED_SHOWN} more" if len(failed) > FAILED_SHOWN else "")
    left = total - state.dag.finished - len(failed)
    if left:
        detail += f"; {say_count(left, 'bead')} never started"
    if state.tripped and left:
        return Ended(stop=StopReason.LIMIT_REACHED, detail=f"stopped after {say_count(len(failed), 'failure')}: {detail}")
    timed_out = all(why.startswith("timeout-") for why in failed.values())
    return Ended(stop=StopReason.TIMED_OUT if timed_out else StopReason.FAILED, detail=detail)
