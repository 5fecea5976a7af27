"""Says what a person's directive means: resume with its changes, or an answer. A refusal says why in a sentence."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.events import Resumed, StopReason
from agent_orchestrator.core.inputs import Answer, Resume
from agent_orchestrator.core.lifecycle import Phase, refuse
from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import Refused, UsageError
from agent_orchestrator.systems.workflow.adoption import adopt
from agent_orchestrator.systems.workflow.decide.outcomes import human_answered
from agent_orchestrator.systems.workflow.events import OptionsChanged, SpecReplaced, StepsReset, WorkflowEvent
from agent_orchestrator.systems.workflow.spec import WorkflowSpec, with_options_kept
from agent_orchestrator.systems.workflow.state import FINISHED, StepStatus, WorkflowState

LIMITS = ("max_attempts", "max_iterations", "max_parallel")


def answer_step(state: WorkflowState, directive: Answer) -> list[WorkflowEvent]:
    """Approves or rejects the step that waits for a person."""
    waiting, unit = list(state.asking), directive.unit
    if unit is None and len(waiting) == 1:
        unit = waiting[0]
    if unit is not None and unit in state.asking:
        return human_answered(state, unit, directive.approved, directive.comments)
    if unit is not None and unit not in state.steps:
        return refuse(directive, f"there is no step {unit!r} in this run")
    if unit is not None:
        status = state.steps[unit].status
        return refuse(directive, f"step {unit!r} does not wait for a person, it is {status}")
    why = f"several steps wait for a person, name one: {', '.join(waiting)}" if waiting else "no step waits for a person"
    return refuse(directive, why)


def resume_run(state: WorkflowState, directive: Resume) -> list[WorkflowEvent]:
    """Goes on: after a pause, after a failure with the failed steps again, or from the step that is asked for."""
    try:
        changes = _Changes.read(directive.changes)
        return changes.apply(state)
    except UsageError as error:
        return refuse(directive, str(error))


class _Changes(msgspec.Struct):
    """The content of `Resume.changes`."""

    start_at: str | None
    spec: WorkflowSpec | None
    limits: dict[str, int]

    @classmethod
    def read(cls, changes: dict[str, Any]) -> _Changes:
        """The changes, each checked."""
        unknown = [key for key in changes if key not in {"start_at", "spec", *LIMITS}]
        if unknown:
            raise Refused(why=f"resume does not know the change {unknown[0]!r}")
        start_at, spec = changes.get("start_at"), None
        if changes.get("spec") is not None:
            try:
                spec = typed.convert(changes["spec"], WorkflowSpec)
            except msgspec.ValidationError as error:
                raise Refused(why=f"the changed workflow is not valid: {error}") from None
        limits = {name: read_count(changes[name], name) for name in LIMITS if changes.get(name) is not None}
        return cls(start_at, spec, limits)

    def apply(self, state: WorkflowState) -> list[WorkflowEvent]:
        """The events of the resumption."""
        life = state.lifecycle
        if life.phase is Phase.ABORTING:
            raise Refused(why="the run is being aborted")
        events: list[WorkflowEvent] = []
        if self.start_at is not None:
            events += self._restart(state, self.start_at)
        elif self.spec is not None:
            events += _adopt_changes(state, self.spec)
        elif life.ended:
            events += _retry_failed(state)
        elif life.running and not self.limits:
            raise Refused(why="the run is running already")
        if self.limits:
            events.append(msgspec.structs.replace(OptionsChanged(), **self.limits))
        if not life.running:
            events.append(Resumed())
        return events

    def _restart(self, state: WorkflowState, start: str) -> list[WorkflowEvent]:
        """From `start` on, with the workflow file as it is now; what lies above must be done."""
        spec = with_options_kept(self.spec, state.spec) if self.spec is not None else state.spec
        dag = Dag({step.id: step.needs for step in spec.steps}) if self.spec is not None else state.dag
        steps = {step.id: None for step in spec.steps}
        if start not in steps:
            raise Refused(why=f"there is no step {start!r} to start at; the workflow has: {', '.join(list(steps)[:50])}")
        for above in dag.upstream(start):
            status = state.steps[above].status if above in state.steps else StepStatus.PENDING
            if above != start and status not in FINISHED:
                raise Refused(why=f"cannot start at {start!r}: step {above!r} above it is {status}, not COMPLETED or SKIPPED")
        events: list[WorkflowEvent] = []
        again = set(dag.downstream(start))
        if self.spec is not None:
            again |= _changed_at_work(state, spec)
            added = tuple(unit for unit in steps if unit not in state.steps)
            removed = tuple(unit for unit in state.steps if unit not in steps)
            events.append(SpecReplaced(spec=spec, added=added, removed=removed))
        reset = tuple(unit for unit in steps if unit in again)
        return [*events, StepsReset(steps=reset, feedback=_tell_rejections(state, reset))]


def _adopt_changes(state: WorkflowState, spec: WorkflowSpec) -> list[WorkflowEvent]:
    """Goes on with what can be taken of a changed file; an ended run also with its failed steps."""
    taken = adopt(state, spec)
    again, ended = set(taken.again), state.lifecycle.ended
    if ended:
        _refuse_aborted(state)
        again |= {unit for unit in state.failed if unit not in taken.removed}
    if ended and not again and not taken.added and all(step.status in FINISHED for step in state.steps.values()):
        raise Refused(why="the run is completed, and the changed workflow has no new steps; repeat a part with --start-at-step")
    events: list[WorkflowEvent] = [SpecReplaced(spec=taken.spec, added=taken.added, removed=taken.removed, changed=taken.changed)]
    if again:
        reset = tuple(step.id for step in taken.spec.steps if step.id in again)
        events.append(StepsReset(steps=reset, feedback=_tell_rejections(state, reset)))
    return events


def _changed_at_work(state: WorkflowState, spec: WorkflowSpec) -> set[str]:
    """Steps in the middle of something that the new file describes differently: half of each would make no sense."""
    at_work = {effect.unit for effect in state.doing} | set(state.due)
    return {step.id for step in spec.steps if step.id in at_work and step != state.specs[step.id]}


def _retry_failed(state: WorkflowState) -> list[WorkflowEvent]:
    """An ended run goes on with its failed steps, counted from 0 again."""
    _refuse_aborted(state)
    if state.failed:
        steps = tuple(unit for unit in state.steps if unit in state.failed)
        return [StepsReset(steps=steps, feedback=_tell_rejections(state, steps))]
    if state.lifecycle.stop is StopReason.COMPLETED and state.dag.finished == len(state.steps):
        raise Refused(why="the run is completed; repeat a part of it with --start-at-step")
    return []


def _tell_rejections(state: WorkflowState, steps: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Give the comments of people who rejected one of the steps; they would be lost where no loop-back told them."""
    told = {}
    for unit in (one for one in steps if one in state.works):
        answer, step = state.works[unit].answer, state.steps[unit]
        if answer is not None and not answer["approved"]:
            said = {"error": step.last_error, "comments": answer["comments"]}
            told[unit] = {"iteration": step.iteration_count, "step": unit, **said}
    return told


def _refuse_aborted(state: WorkflowState) -> None:
    if state.lifecycle.stop is StopReason.ABORTED:
        raise Refused(why="the run was aborted; start again at a step with --start-at-step, or start a new run")
