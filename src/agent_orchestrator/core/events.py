"""Facts that every system's journal may hold (`CommonEvent`), and facts that several tell in the same words.

A system's own events stand beside these in its union. Past tense, small, and never changed once released: journals of every
version are folded for ever.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.hold import Hold
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.who import Who


class StopReason(StrEnum):
    """The reason why a run is not running; a pause or a limit is never recorded as success."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    LIMIT_REACHED = "limit_reached"
    BUDGET_EXHAUSTED = "budget_exhausted"
    TIMED_OUT = "timed_out"
    RATE_LIMITED = "rate_limited"
    STUCK = "stuck"
    WAITING_ON_HUMAN = "waiting_on_human"
    INTERRUPTED = "interrupted"


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Base of all events, a system's own included."""

    who: Who | None = None
    """The person or program that said so; on the first event that a directive or an answer led to."""


class TakenUp(Event, frozen=True, kw_only=True, tag="taken_up"):
    """A process began to drive the run. A launch without marks from an earlier boot may have run: it is lost."""

    boot: str
    host: str
    pid: int
    version: str


class Paused(Event, frozen=True, kw_only=True, tag="paused"):
    """Nothing new starts; with `now`, what runs is stopped."""

    reason: str
    now: bool = False
    stop: StopReason = StopReason.INTERRUPTED


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """The run goes on."""


class Aborted(Event, frozen=True, kw_only=True, tag="aborted"):
    """All that runs is being stopped; `Ended` follows when it has."""

    reason: str


class Ended(Event, frozen=True, kw_only=True, tag="ended"):
    """The run is over."""

    stop: StopReason
    detail: str = ""


class DirectiveRefused(Event, frozen=True, kw_only=True, tag="directive_refused"):
    """A directive was taken from the inbox and changed nothing, and why."""

    directive: str
    why: str


class CameLate(Event, frozen=True, kw_only=True, tag="came_late"):
    """An outcome of an effect that is no longer wanted. Its usage counts; nothing else changes."""

    effect: EffectId
    failure: FailureKind | None = None


class LimitsSet(Event, frozen=True, kw_only=True, tag="limits_set"):
    """The budgets of the run from now on: all of them, not only what changed."""

    limits: Budget


class AgentsSet(Event, frozen=True, kw_only=True, tag="agents_set"):
    """The agents from the next launch on, where that changed: by role, and by bead in a swarm."""

    agents: dict[str, AgentChoice]
    changes: tuple[str, ...] = ()
    """The same in words, one change each."""


class BudgetWarned(Event, frozen=True, kw_only=True, tag="budget_warned"):
    """A good part of a limit is spent; `what` names the limit, as in `run.cost_usd`."""

    what: str
    percent: int
    spent: float
    limit: float


class UnitHeld(Event, frozen=True, kw_only=True, tag="unit_held"):
    """The unit's agent may not start yet; said again when the reason changes."""

    unit: str
    hold: Hold


class HoldEnded(Event, frozen=True, kw_only=True, tag="hold_ended"):
    """The unit's agent may start now."""

    unit: str
    effect: EffectId


class ToolRefused(Event, frozen=True, kw_only=True, tag="tool_refused"):
    """An agent was refused a tool: told to whoever works as that agent next, and to people. Once for each thing asked."""

    effect: EffectId
    unit: str
    agent: str
    tool: str
    asked: str = ""
    allow: str = ""


CommonEvent = (
    TakenUp
    | Paused
    | Resumed
    | Aborted
    | Ended
    | DirectiveRefused
    | CameLate
    | LimitsSet
    | AgentsSet
    | BudgetWarned
    | UnitHeld
    | HoldEnded
    | ToolRefused
)


class BackoffEnded(Event, frozen=True, kw_only=True, tag="backoff_ended"):
    """The unit may try again."""

    step: str


class QuestionsRaised(Event, frozen=True, kw_only=True, tag="questions_raised"):
    """Whoever plans wants to know something first; no questions is an answer, too."""

    questions: tuple[str, ...]


class HumanAsked(Event, frozen=True, kw_only=True, tag="human_asked"):
    """A person is asked about something, `after` the launch whose work it is about."""

    effect: EffectId
    step: str
    about: str
    question: str
    after: EffectId = EffectId("")


class HumanJudged(Event, frozen=True, kw_only=True, tag="human_judged"):
    """A person answered; what it means follows."""

    step: str
    about: str
    approved: bool
    comments: str = ""


class MergeStarted(Event, frozen=True, kw_only=True, tag="merge_started"):
    """The unit's branch is being merged: it is its turn."""

    effect: EffectId
    step: str


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited state file was not adopted."""

    problems: tuple[str, ...]


class Concluded(Event, frozen=True, kw_only=True, tag="concluded"):
    """Nothing more will be tried; `Ended` follows."""

    stop: StopReason
    detail: str
