"""Says what follows by itself: the next start, or the end of the run. Asked until it is silent; one start at a time."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Ended, StopReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.systems.workflow.events import CheckStarted, GatesAwaited, StepSkipped, StepStarted, WorkflowEvent
from agent_orchestrator.systems.workflow.items import list_items
from agent_orchestrator.systems.workflow.state import WorkflowState


def advance(state: WorkflowState, now_us: int) -> Sequence[WorkflowEvent]:
    """The next facts, or none."""
    if not state.lifecycle.running:
        if state.lifecycle.phase is Phase.ABORTING and not state.doing.active:
            return [Ended(stop=StopReason.ABORTED, detail=state.lifecycle.detail)]
        return ()
    room = state.doing.active < state.spec.max_parallel
    if state.due:
        return _go_on(state) if room else ()
    unit = state.dag.peek()
    if unit is None:
        return () if state.doing else [_end(state)]
    if not state.applies(unit):
        return [StepSkipped(step=unit)]
    if state.spec.gate_state_file is not None and state.specs[unit].gates:
        return [GatesAwaited(step=unit, effect=state.name_effect(unit, "gates"))]
    return _start(state, unit) if room else ()


def _go_on(state: WorkflowState) -> Sequence[WorkflowEvent]:
    """A unit that is in the middle of something comes before one that is not."""
    unit, what = next(iter(state.due.items()))
    if what == "check":
        return [CheckStarted(step=unit, effect=state.name_effect(unit, "check"))]
    return _start(state, unit)


def _start(state: WorkflowState, unit: str) -> Sequence[WorkflowEvent]:
    work = state.works[unit]
    item = None
    if state.specs[unit].loop is not None:
        if work.items is None:
            return list_items(state, unit)
        item = work.item
    attempt = work.next_attempt
    return [StepStarted(step=unit, effect=state.name_effect(unit, "agent", attempt), attempt=attempt, item=item)]


def _end(state: WorkflowState) -> Ended:
    """Nothing runs, nothing waits, nothing can start."""
    if not state.failed:
        return Ended(stop=StopReason.COMPLETED)
    causes = set(state.failed.values())
    names = list(state.failed)
    detail = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    if "limit" in causes:
        return Ended(stop=StopReason.LIMIT_REACHED, detail=detail)
    return Ended(stop=StopReason.TIMED_OUT if causes == {"timed_out"} else StopReason.FAILED, detail=detail)
