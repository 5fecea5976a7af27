"""The few ways in which a step's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.workflow.state import COMPLETED, PENDING, StepDocument, WorkflowState


def leave(state: WorkflowState, unit: str) -> None:
    """The unit does nothing and waits for nothing."""
    state.doing.drop(unit)
    if state.due:
        state.due.pop(unit, None)
    if state.asking:
        state.asking.pop(unit, None)
    if state.gated:
        state.gated.pop(unit, None)


def pend(step: StepDocument, reason: str, at_us: int) -> None:
    """The step is PENDING, and this is why."""
    step.status, step.ended_at, step.last_error = PENDING, iso(at_us), reason


def go_on(state: WorkflowState, unit: str, what: str, at_us: int) -> None:
    """The unit's next launch is due; a run that is paused must not show a step as RUNNING that does nothing."""
    state.due[unit] = what
    if not state.lifecycle.running:
        pend(state.steps[unit], f"paused: {state.lifecycle.detail}", at_us)


def complete(state: WorkflowState, unit: str, at_us: int) -> None:
    """The step is done; its dependents may become ready."""
    step = state.steps[unit]
    if state.due:
        state.due.pop(unit, None)
    step.status = COMPLETED
    step.ended_at = iso(at_us)
    if step.started_at is None:
        step.started_at = step.ended_at
    step.last_error = step.blocked_by_loop = None
    state.works[unit].forget_attempts()
    state.dag.finish(unit)


def reset(state: WorkflowState, unit: str, iteration: int) -> None:
    """The unit is PENDING again, with nothing of its past but the counters, the newest report and what it was told."""
    work = state.works[unit]
    leave(state, unit)
    state.failed.pop(unit, None)
    state.steps[unit] = StepDocument(iteration_count=iteration, report_path=state.steps[unit].report_path)
    work.next_attempt, work.spent_us, work.item, work.items = 1, 0, 0, None
    work.answer, work.summary, work.session = None, "", None
