"""Applies one fact to a workflow run's state. Never judges; touches only what the event names.

A loop-back touches what lies below its target.
"""

from __future__ import annotations

from functools import partial

import msgspec

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.events import BackoffEnded, Ended, HoldEnded, StopReason, UnitHeld
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.workflow import events as e
from agent_orchestrator.systems.workflow.effects import (
    answer_file,
    ask_human,
    await_gates,
    plan_agent,
    read_items,
    report_file,
    run_check,
)
from agent_orchestrator.systems.workflow.state import (
    COMPLETED,
    FAILED,
    FINISHED,
    PENDING,
    RUNNING,
    SKIPPED,
    WAITING_ON_HUMAN,
    StepDocument,
    StepStatus,
    StepWork,
    WorkflowState,
)


def _step_started(state: WorkflowState, event: e.StepStarted, at_us: int) -> None:
    unit = event.step
    step, work = state.steps[unit], state.works[unit]
    if state.due:
        state.due.pop(unit, None)
    state.dag.take(unit)
    step.status = RUNNING
    step.attempts = event.attempt
    step.started_at, step.ended_at = iso(at_us), None
    step.last_error = step.blocked_by_loop = None
    if event.item is None and (step.artifacts or step.metrics or step.logs):
        step.artifacts, step.metrics, step.logs = [], {}, []
    work.open_launch(event.effect, at_us)
    work.next_attempt = event.attempt + 1
    work.agent_launch = event.effect
    work.summary = ""
    work.answer = None
    state.doing.put(plan_agent(state, unit, event.effect))


def _agent_finished(state: WorkflowState, event: e.AgentFinished, at_us: int) -> None:
    unit = event.step
    step, work = state.steps[unit], state.works[unit]
    _leave(state, unit)
    work.end_agent(event)
    if event.reported:
        context = state.context
        step.report_path = f"{context.home}/{report_file(context.run, unit)}"
        if event.artifacts:
            work.list_artifacts(step, event.artifacts)
        if event.logs:
            step.logs += event.logs
        work.summary = event.summary
    if event.metrics:
        step.metrics = step.metrics | event.metrics
    if event.failure is not None and not event.went_on:
        work.tell({"attempt": step.attempts, "error": event.failure.message, "tail": event.tail})


def _retry_scheduled(state: WorkflowState, event: e.RetryScheduled, at_us: int) -> None:
    step, work = state.steps[event.step], state.works[event.step]
    _pend(step, event.error, at_us)
    work.launches += 1
    work.spent_us = 0
    state.doing.put(Wait(id=event.effect, unit=event.step, until_us=event.until_us, reason=event.error))


def _backoff_ended(state: WorkflowState, event: BackoffEnded, at_us: int) -> None:
    _leave(state, event.step)
    state.due[event.step] = "agent"


def _step_interrupted(state: WorkflowState, event: e.StepInterrupted, at_us: int) -> None:
    step, work = state.steps[event.step], state.works[event.step]
    _leave(state, event.step)
    _pend(step, event.error, at_us)
    if not event.check:
        work.next_attempt = step.attempts
    state.due[event.step] = "check" if event.check else "agent"


def _unit_held(state: WorkflowState, event: UnitHeld, at_us: int) -> None:
    if state.doing.wants(event.hold.effect):
        _pend(state.steps[event.unit], event.hold.told, at_us)


def _hold_ended(state: WorkflowState, event: HoldEnded, at_us: int) -> None:
    if state.doing.wants(event.effect):
        step = state.steps[event.unit]
        step.status, step.last_error = RUNNING, None
        step.started_at, step.ended_at = iso(at_us), None


def _check_queued(state: WorkflowState, event: e.CheckQueued, at_us: int) -> None:
    _leave(state, event.step)
    state.works[event.step].count_rerun(again=event.again)
    _go_on(state, event.step, "check", at_us)


def _check_started(state: WorkflowState, event: e.CheckStarted, at_us: int) -> None:
    step = state.steps[event.step]
    _leave(state, event.step)
    step.status = RUNNING
    step.last_error = step.ended_at = None
    state.works[event.step].open_launch(event.effect, at_us)
    state.doing.put(run_check(state, event.step, event.effect))


def _check_finished(state: WorkflowState, event: e.CheckFinished, at_us: int) -> None:
    _leave(state, event.step)
    state.works[event.step].end_check(event, event.command)


def _human_asked(state: WorkflowState, event: e.HumanAsked, at_us: int) -> None:
    unit, context = event.step, state.context
    step = state.steps[unit]
    step.status = WAITING_ON_HUMAN
    if state.specs[unit].answer_file:
        step.manual_input_path = f"{context.home}/{answer_file(context.run, unit)}"
    state.works[unit].launches += 1
    state.asking[unit] = None
    state.doing.put(ask_human(state, unit, event.effect, event.after))


def _human_judged(state: WorkflowState, event: e.HumanJudged, at_us: int) -> None:
    _leave(state, event.step)
    state.steps[event.step].status = RUNNING
    state.works[event.step].answer = {"approved": event.approved, "comments": event.comments, "at": iso(at_us)}


def _gates_awaited(state: WorkflowState, event: e.GatesAwaited, at_us: int) -> None:
    unit = event.step
    state.dag.take(unit)
    state.steps[unit].last_error = f"waiting for gates: {', '.join(state.specs[unit].gates)}"
    state.works[unit].launches += 1
    state.gated[unit] = None
    state.doing.put(await_gates(state, unit, event.effect))


def _gates_passed(state: WorkflowState, event: e.GatesPassed, at_us: int) -> None:
    _leave(state, event.step)
    state.steps[event.step].last_error = None
    state.due[event.step] = "agent"


def _items_asked(state: WorkflowState, event: e.ItemsAsked, at_us: int) -> None:
    _leave(state, event.step)
    state.dag.take(event.step)
    state.works[event.step].launches += 1
    state.doing.put(read_items(state, event.step, event.effect))


def _items_listed(state: WorkflowState, event: e.ItemsListed, at_us: int) -> None:
    step, work = state.steps[event.step], state.works[event.step]
    _leave(state, event.step)
    state.dag.take(event.step)
    work.items, work.item = event.items, 0
    step.artifacts, step.metrics = [], {}
    step.logs = [] if event.items else ["The loop has no items: nothing was done."]
    if event.left_out:
        count = len(event.items)
        step.logs = [f"The loop takes the first {count} of {count + event.left_out} items: that is its max_iterations."]
    state.due[event.step] = "agent"


def _item_completed(state: WorkflowState, event: e.ItemCompleted, at_us: int) -> None:
    work = state.works[event.step]
    work.item = event.item + 1
    work.next_attempt, work.spent_us = 1, 0
    work.forget_attempts()
    _go_on(state, event.step, "agent", at_us)


def _step_completed(state: WorkflowState, event: e.StepCompleted | e.GateFailed, at_us: int) -> None:
    """The step is done; its dependents may become ready."""
    unit = event.step
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


def _step_skipped(state: WorkflowState, event: e.StepSkipped, at_us: int) -> None:
    _leave(state, event.step)
    state.steps[event.step].status = SKIPPED
    state.steps[event.step].last_error = state.steps[event.step].blocked_by_loop = None
    state.dag.finish(event.step)


def _step_failed(state: WorkflowState, event: e.StepFailed, at_us: int) -> None:
    step = state.steps[event.step]
    _leave(state, event.step)
    state.dag.take(event.step)
    step.status, step.ended_at, step.last_error = FAILED, iso(at_us), event.error
    step.started_at = step.started_at or step.ended_at
    state.failed[event.step] = event.cause


def _gate_failed(state: WorkflowState, event: e.GateFailed, at_us: int) -> None:
    _step_completed(state, event, at_us)
    state.steps[event.step].last_error = event.error


def _looped_back(state: WorkflowState, event: e.LoopedBack, at_us: int) -> None:
    below = state.dag.downstream(event.target)
    for unit in below:
        step, work = state.steps[unit], state.works[unit]
        interrupted = unit != event.step and (unit in state.due or state.doing.of(unit) is not None)
        reason = step.last_error if unit == event.step else None
        if interrupted and step.attempts:
            reason = f"interrupted: {event.step} looped back to {event.target}"
            work.abandon_launch(at_us, FailureKind.STOPPED)
        _reset(state, unit, iteration=step.iteration_count + 1)
        state.steps[unit].last_error = reason
        state.steps[unit].blocked_by_loop = event.step if unit != event.target else None
        work.forget_attempts()
        work.tell(event.feedback)
    state.dag.reset(below)


def _steps_reset(state: WorkflowState, event: e.StepsReset, at_us: int) -> None:
    for unit in event.steps:
        _reset(state, unit, iteration=0)
        state.works[unit].feedback = (event.feedback[unit],) if unit in event.feedback else ()
    state.dag.reset(event.steps)


def _options_changed(state: WorkflowState, event: e.OptionsChanged, at_us: int) -> None:
    given = {name: value for name in event.__struct_fields__ if name != "who" and (value := getattr(event, name)) is not None}
    state.spec = msgspec.structs.replace(state.spec, **given)


def _spec_replaced(state: WorkflowState, event: e.SpecReplaced, at_us: int) -> None:
    for unit in event.removed:
        _leave(state, unit)
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
            _leave(state, unit)
            state.failed.pop(unit, None)
            state.dag.reset([unit])
        for name, value in fields.items():
            setattr(step, name, StepStatus(value) if name == "status" else value)
        state.works[unit].next_attempt, state.works[unit].listed = step.attempts + 1, None
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
        _leave(state, unit)
    state.due.clear()
    state.lifecycle.evolve(event)


def _leave(state: WorkflowState, unit: str) -> None:
    """The unit does nothing and waits for nothing."""
    state.doing.drop(unit)
    if state.due:
        state.due.pop(unit, None)
    if state.asking:
        state.asking.pop(unit, None)
    if state.gated:
        state.gated.pop(unit, None)


def _pend(step: StepDocument, reason: str, at_us: int) -> None:
    """The step is PENDING, and this is why."""
    step.status, step.ended_at, step.last_error = PENDING, iso(at_us), reason


def _go_on(state: WorkflowState, unit: str, what: str, at_us: int) -> None:
    """The unit's next launch is due; a run that is paused must not show a step as RUNNING that does nothing."""
    state.due[unit] = what
    if not state.lifecycle.running:
        _pend(state.steps[unit], f"paused: {state.lifecycle.detail}", at_us)


def _reset(state: WorkflowState, unit: str, iteration: int) -> None:
    """The unit is PENDING again, with nothing of its past but the counters, the newest report and what it was told."""
    work = state.works[unit]
    _leave(state, unit)
    state.failed.pop(unit, None)
    state.steps[unit] = StepDocument(iteration_count=iteration, report_path=state.steps[unit].report_path)
    work.next_attempt, work.spent_us, work.item, work.items = 1, 0, 0, None
    work.answer, work.summary, work.session = None, "", None


_FACTS: Facts = {
    e.StepStarted: _step_started,
    e.AgentFinished: _agent_finished,
    e.RetryScheduled: _retry_scheduled,
    BackoffEnded: _backoff_ended,
    e.StepInterrupted: _step_interrupted,
    UnitHeld: _unit_held,
    HoldEnded: _hold_ended,
    e.CheckQueued: _check_queued,
    e.CheckStarted: _check_started,
    e.CheckFinished: _check_finished,
    e.HumanAsked: _human_asked,
    e.HumanJudged: _human_judged,
    e.GatesAwaited: _gates_awaited,
    e.GatesPassed: _gates_passed,
    e.ItemsAsked: _items_asked,
    e.ItemsListed: _items_listed,
    e.ItemCompleted: _item_completed,
    e.StepCompleted: _step_completed,
    e.StepSkipped: _step_skipped,
    e.StepFailed: _step_failed,
    e.GateFailed: _gate_failed,
    e.LoopedBack: _looped_back,
    e.StepsReset: _steps_reset,
    e.OptionsChanged: _options_changed,
    e.SpecReplaced: _spec_replaced,
    e.StateEdited: _state_edited,
    Ended: _ended,
}
"""RunBegan and EditRefused change nothing but the time of the last fact."""

evolve = partial(apply_event, _FACTS)
"""Applies an event to the state: state, event, the time when it happened."""
