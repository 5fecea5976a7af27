"""Facts that every system's journal may hold (`CommonEvent`), and facts that several tell in the same words.

A system's own events stand beside these in its union. Past tense, small, and never changed once released: journals of every
version are folded for ever.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import AgentChoice, KeptTree, TreeReturn
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.hold import Hold
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Saying
from agent_orchestrator.core.queue import Landing
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
    lost: tuple[str, ...] = ()
    """The refs with what agents had written that were lost with another host; they are started again without it."""


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


class LandingsAsked(Event, frozen=True, kw_only=True, tag="landings_asked"):
    """A person wants these branches of the run merged, one after another, in this order."""

    landings: tuple[Landing, ...]


class LandingStarted(Event, frozen=True, kw_only=True, tag="landing_started"):
    """The unit's branch is being merged; said again when the target moved meanwhile."""

    unit: str
    effect: EffectId
    at_us: int
    """The date of the merge."""


class LandingEnded(Event, frozen=True, kw_only=True, tag="landing_ended"):
    """The merge of the unit's branch is over; only `landed` moved the target."""

    unit: str
    effect: EffectId
    verdict: str
    detail: str = ""
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    tail: str = ""
    """The end of what the check wrote, where it failed."""


class LandingsDropped(Event, frozen=True, kw_only=True, tag="landings_dropped"):
    """These branches are not to be merged any more; what runs for it is stopped."""

    units: tuple[str, ...]
    reason: str


class WorkDiscarded(Event, frozen=True, kw_only=True, tag="work_discarded"):
    """The work of the run is discarded: each ref keeps what its branch, or the checkout, had; then they are removed."""

    kept: dict[str, str]


class WorkPublished(Event, frozen=True, kw_only=True, tag="work_published"):
    """The unit's branch has a pull request."""

    unit: str
    branch: str
    url: str


class UnitSteered(Event, frozen=True, kw_only=True, tag="unit_steered"):
    """A person told the agents of a unit something: the next prompt has it, and those of later tries of the same iteration."""

    text: str
    unit: str = ""
    """Empty for all units."""
    now: bool = False
    """The agent at work is stopped, and goes on with the words."""


class UnitTakenOver(Event, frozen=True, kw_only=True, tag="unit_taken_over"):
    """A person takes the session of the unit's agent over: one at work is stopped, and none starts until it is handed back."""

    unit: str


class UnitHandedBack(Event, frozen=True, kw_only=True, tag="unit_handed_back"):
    """The unit's agent may go on, in the session that a person had."""

    unit: str


class AgentSpoke(Event, frozen=True, kw_only=True, tag="agent_spoke"):
    """An agent at work said something to people: a note, a question, or that it has read their words."""

    effect: EffectId
    unit: str
    saying: Saying
    text: str = ""


class TreeKept(Event, frozen=True, kw_only=True, tag="tree_kept"):
    """A working tree as it was at this moment is kept: the run can go back to it."""

    kept: KeptTree
    unit: str = ""
    """The unit whose work it is; empty when the run was taken up."""


class EvidenceWeighed(Event, frozen=True, kw_only=True, tag="evidence_weighed"):
    """A check told how many tests it ran; where it passed, the reasons to doubt that."""

    unit: str
    command: str
    tests: int | None = None
    doubts: tuple[str, ...] = ()


class WentBack(Event, frozen=True, kw_only=True, tag="went_back"):
    """The run is again what it was at row `to`: the rows between are history. First in its row; what was at work then ends there.

    Nothing that was spent comes back: neither the time at work nor, in the ledger, the money.
    """

    to: int
    point: str
    """The point by the name that a person gave."""
    generation: int
    """The number of times that the run has gone back: part of the ids of effects, so that none is used again."""
    worked_us: int = 0
    trees: tuple[TreeReturn, ...] = ()
    stale: tuple[str, ...] = ()
    """Sessions of agents that went on after the point: none is gone on with."""


class Forked(Event, frozen=True, kw_only=True, tag="forked"):
    """The run began as a copy of another one up to row `at` of its journal."""

    of: str
    at: int
    point: str
    trees: tuple[TreeReturn, ...] = ()
    """The trees and branches of its own."""
    shared: tuple[str, ...] = ()
    """Sessions of agents that belong to the other run: gone on with only as copies."""
    stale: tuple[str, ...] = ()
    """Sessions that the other run went on with after the point: none is gone on with."""


class TreesReturned(Event, frozen=True, kw_only=True, tag="trees_returned"):
    """The working trees are those of the point that the run went back to, or was forked at."""

    kept: tuple[str, ...] = ()
    """The refs that keep what was there before."""


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
    | LandingsAsked
    | LandingStarted
    | LandingEnded
    | LandingsDropped
    | WorkDiscarded
    | WorkPublished
    | UnitSteered
    | UnitTakenOver
    | UnitHandedBack
    | AgentSpoke
    | TreeKept
    | EvidenceWeighed
    | WentBack
    | Forked
    | TreesReturned
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
