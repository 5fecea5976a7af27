"""The facts of a workflow run's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id; the effect itself is built from the spec and the state by `evolve`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.events import BackoffEnded, CommonEvent, EditRefused, Event
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.launch_events import AgentLaunchFinished, CheckLaunchFinished
from agent_orchestrator.systems.workflow.spec import WorkflowSpec


class StepEvent(Event, frozen=True, kw_only=True):
    """A fact about one step."""

    step: str


class RunBegan(Event, frozen=True, kw_only=True, tag="run_began"):
    """The run exists; all steps are PENDING."""

    workflow: str
    steps: int


class StepStarted(StepEvent, frozen=True, kw_only=True, tag="step_started"):
    """The step's agent is to run."""

    effect: EffectId
    attempt: int
    item: int | None = None


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """The step's agent is over, and this is what it left; what it means follows as an event of its own."""

    step: str
    reported: bool = False
    artifacts: tuple[str, ...] = ()
    metrics: dict[str, str] = msgspec.field(default_factory=dict)
    logs: tuple[str, ...] = ()


class RetryScheduled(StepEvent, frozen=True, kw_only=True, tag="retry_scheduled"):
    """The attempt failed; the next one follows at `until_us`."""

    effect: EffectId
    until_us: int
    error: str


class StepInterrupted(StepEvent, frozen=True, kw_only=True, tag="step_interrupted"):
    """The launch was stopped; the same attempt (or its check) goes on with a new launch when the run does."""

    error: str
    check: bool = False


class CheckQueued(StepEvent, frozen=True, kw_only=True, tag="check_queued"):
    """The step's check is to run, for the first time or, with `again`, because its evidence was worth nothing."""

    again: bool = False


class CheckStarted(StepEvent, frozen=True, kw_only=True, tag="check_started"):
    """The step's check runs."""

    effect: EffectId


class CheckFinished(CheckLaunchFinished, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence of one check; what it means follows as an event of its own."""

    step: str
    command: str


class HumanAsked(StepEvent, frozen=True, kw_only=True, tag="human_asked"):
    """The step waits for a person to judge the work of the launch `after`."""

    effect: EffectId
    after: EffectId


class HumanJudged(StepEvent, frozen=True, kw_only=True, tag="human_judged"):
    """A person approved or rejected; what it means follows as an event of its own."""

    approved: bool
    comments: str = ""


class GatesAwaited(StepEvent, frozen=True, kw_only=True, tag="gates_awaited"):
    """The step waits until its gates are open."""

    effect: EffectId


class GatesPassed(StepEvent, frozen=True, kw_only=True, tag="gates_passed"):
    """The step's gates are open."""


class ItemsAsked(StepEvent, frozen=True, kw_only=True, tag="items_asked"):
    """The file that lists the items of the step's loop is to be read."""

    effect: EffectId


class ItemsListed(StepEvent, frozen=True, kw_only=True, tag="items_listed"):
    """The items of the step's loop."""

    items: tuple[Any, ...]
    left_out: int = 0
    """The number of items beyond the loop's `max_iterations`."""


class ItemCompleted(StepEvent, frozen=True, kw_only=True, tag="item_completed"):
    """One item is done and another follows."""

    item: int


class StepCompleted(StepEvent, frozen=True, kw_only=True, tag="step_completed"):
    """The step is done."""


class StepSkipped(StepEvent, frozen=True, kw_only=True, tag="step_skipped"):
    """The step's `when` is false."""


class StepFailed(StepEvent, frozen=True, kw_only=True, tag="step_failed"):
    """The step failed for good; `cause` is agent, gate, limit, timed_out or spec."""

    error: str
    cause: str


class GateFailed(StepEvent, frozen=True, kw_only=True, tag="gate_failed"):
    """The step did its work and its gate says no: LoopedBack follows."""

    error: str


class LoopedBack(StepEvent, frozen=True, kw_only=True, tag="looped_back"):
    """The target and everything below it are to be done again, told why."""

    target: str
    feedback: dict[str, Any]


class StepsReset(Event, frozen=True, kw_only=True, tag="steps_reset"):
    """These steps are PENDING again, their counters 0."""

    steps: tuple[str, ...]
    feedback: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """The words of a person who rejected a step, for its next launch."""


class OptionsChanged(Event, frozen=True, kw_only=True, tag="options_changed"):
    """Limits given when the run was resumed; None leaves what was."""

    max_attempts: int | None = None
    max_iterations: int | None = None
    max_parallel: int | None = None


class SpecReplaced(Event, frozen=True, kw_only=True, tag="spec_replaced"):
    """The workflow file was read again: new steps are PENDING, removed ones are dropped."""

    spec: WorkflowSpec
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Steps that are defined otherwise from now on; only said where changes were adopted."""


class StateEdited(Event, frozen=True, kw_only=True, tag="state_edited"):
    """Fields of steps that a person changed in run_state.json, or that came with an imported one."""

    changes: dict[str, dict[str, Any]]


WorkflowEvent = (
    CommonEvent
    | RunBegan
    | StepStarted
    | AgentFinished
    | RetryScheduled
    | BackoffEnded
    | StepInterrupted
    | CheckQueued
    | CheckStarted
    | CheckFinished
    | HumanAsked
    | HumanJudged
    | GatesAwaited
    | GatesPassed
    | ItemsAsked
    | ItemsListed
    | ItemCompleted
    | StepCompleted
    | StepSkipped
    | StepFailed
    | GateFailed
    | LoopedBack
    | StepsReset
    | OptionsChanged
    | SpecReplaced
    | StateEdited
    | EditRefused
)
