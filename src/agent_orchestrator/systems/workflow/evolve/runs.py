"""Facts about more than one step: a loop-back, a reset, a changed file, a hand edit, the end of the run."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.events import Ended, StopReason
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.workflow import events as e
from agent_orchestrator.systems.workflow.evolve.marks import leave, reset
from agent_orchestrator.systems.workflow.state import FAILED, FINISHED, StepDocument, StepStatus, StepWork, WorkflowState


def _looped_back(state: WorkflowState, event: e.LoopedBack, at_us: int) -> None:
    below = state.dag.downstream(event.target)
    for unit in below:
        step, work = state.steps[unit], state.works[unit]
        interrupted = unit != event.step and (unit in state.due or state.doing.of(unit) is not None)
        reason = step.last_error if unit == event.step else None
        if interrupted and step.attempts:
            reason = f"interrupted: {event.step} looped back to {event.target}"
            work.abandon_launch(at_us, FailureKind.STOPPED)
        reset(state, unit, iteration=step.iteration_count + 1)
        state.steps[unit].last_error = reason
        state.steps[unit].blocked_by_loop = event.step if unit != event.target else None
        work.forget_attempts()
        work.tell(event.feedback)
    state.dag.reset(below)


def _steps_reset(state: WorkflowState, event: e.StepsReset, at_us: int) -> None:
    for unit in event.steps:
        reset(state, unit, iteration=0)
        state.works[unit].feedback = (event.feedback[unit],) if unit in event.feedback else ()
    state.dag.reset(event.steps)


def _options_changed(state: WorkflowState, event: e.OptionsChanged, at_us: int) -> None:
    given = {name: value for name in event.__struct_fields__ if name != "who" and (value := getattr(event, name)) is not None}
    state.spec = msgspec.structs.replace(state.spec, **given)


def _spec_replaced(state: WorkflowState, event: e.SpecReplaced, at_us: int) -> None:
    for unit in event.removed:
        leave(state, unit)
        state.failed.pop(unit, None)
        state.retired[unit] = state.works[unit].launches
    old_steps, old_works = state.steps, state.works
    state.steps, state.works = {}, {}
    for spec in event.spec.steps:
        state.steps[spec.id] = old_steps.get(spec.id) or StepDocument()
        state.works[spec.id] = old_works.get(spec.id) or StepWork(launches=state.retired.pop(spec.id, 0))
    state.adopt(event.spec)
    for unit, step in state.steps.items():
        if step.status in FINISHED:
            state.dag.finish(unit)
        elif step.status is FAILED or unit in state.due or state.doing.of(unit) is not None:
            state.dag.take(unit)


def _state_edited(state: WorkflowState, event: e.StateEdited, at_us: int) -> None:
    for unit, fields in event.changes.items():
        step = state.steps[unit]
        if "status" in fields:
            leave(state, unit)
            state.failed.pop(unit, None)
            state.dag.reset([unit])
        for name, value in fields.items():
            setattr(step, name, StepStatus(value) if name == "status" else value)
        state.works[unit].next_attempt = step.attempts + 1
        if step.status in FINISHED:
            state.dag.finish(unit)
        elif step.status is FAILED:
            state.dag.take(unit)
            state.failed.setdefault(unit, "agent")


def _ended(state: WorkflowState, event: Ended, at_us: int) -> None:
    if event.stop is StopReason.ABORTED:
        for unit in [*dict.fromkeys([*(effect.unit for effect in state.doing), *state.due])]:
            step = state.steps[unit]
            if step.attempts:
                step.status, step.ended_at, step.last_error = FAILED, iso(at_us), f"aborted: {event.detail}"
                state.failed[unit] = "aborted"
            else:
                state.dag.reset([unit])
    for unit in [effect.unit for effect in state.doing]:
        leave(state, unit)
    state.due.clear()
    state.lifecycle.evolve(event)


RUN_FACTS: Facts = {
    e.LoopedBack: _looped_back,
    e.StepsReset: _steps_reset,
    e.OptionsChanged: _options_changed,
    e.SpecReplaced: _spec_replaced,
    e.StateEdited: _state_edited,
    Ended: _ended,
}
