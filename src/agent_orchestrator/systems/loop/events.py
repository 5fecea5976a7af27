"""The facts of a loop's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id; the effect itself is built from the spec and the state by `evolve`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import CommonEvent, EditRefused, Event, StopReason
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import FileChange
from agent_orchestrator.core.launch_events import AgentLaunchFinished, JudgedCheckFinished
from agent_orchestrator.systems.loop.spec import Tried


class LoopBegan(Event, frozen=True, kw_only=True, tag="loop_began"):
    """The loop exists; `iteration` is more than 0 for a successor."""

    task: str
    iteration: int = 0


class SavingStarted(Event, frozen=True, kw_only=True, tag="saving_started"):
    """The working tree is being saved: as it was found (iteration 0), or as an iteration left it."""

    effect: EffectId
    iteration: int


class TreeSaved(Event, frozen=True, kw_only=True, tag="tree_saved"):
    """The tree is kept as a commit, or `unavailable` says why it is not."""

    iteration: int
    unavailable: str = ""
    commit: str | None = None
    tree: str | None = None
    files_changed: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    changed: tuple[FileChange, ...] = ()
    diff: str = ""
    branch_commit: str | None = None
    then: str | None = None
    """The next thing due."""


class IterationStarted(Event, frozen=True, kw_only=True, tag="iteration_started"):
    """The agent is to work."""

    effect: EffectId
    iteration: int


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """The agent is over, and this is what it said; what it means follows as an event of its own."""

    done: bool = False
    """The agent's own verdict: recorded, and evidence of nothing."""
    quality_score: float | None = None
    learnings: tuple[str, ...] = ()
    tokens: int | None = None
    cost_usd: float | None = None


class BudgetNeared(Event, frozen=True, kw_only=True, tag="budget_neared"):
    """A good part of the budget is spent."""

    percent: int
    spent_usd: float


class LaunchInterrupted(Event, frozen=True, kw_only=True, tag="launch_interrupted"):
    """The launch was stopped; the same thing goes on with a new one when the loop does."""

    what: str


class CheckStarted(Event, frozen=True, kw_only=True, tag="check_started"):
    """A command is being run: before the first iteration, to check one, or to verify the criterion or the tests."""

    effect: EffectId
    purpose: str


class CheckFinished(JudgedCheckFinished, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence of one command; what it means follows as an event of its own."""

    purpose: str
    command: str
    tests: int | None = None
    """The number of tests that a recognised runner says it ran."""
    tests_passed: int | None = None
    then: str | None = None
    """The next thing due; nothing when the loop ends with it."""


class ConfirmationStarted(Event, frozen=True, kw_only=True, tag="confirmation_started"):
    """Another agent is asked whether the criterion is met."""

    effect: EffectId


class HumanAsked(Event, frozen=True, kw_only=True, tag="human_asked"):
    """A person is asked: `criterion`, `weakened` or `stuck`."""

    effect: EffectId
    about: str
    question: str
    after: EffectId
    step: str = "loop"


class HumanJudged(Event, frozen=True, kw_only=True, tag="human_judged"):
    """A person or a confirming agent answered; what it means follows."""

    about: str
    approved: bool
    comments: str = ""


class IterationFinished(Event, frozen=True, kw_only=True, tag="iteration_finished"):
    """One iteration is over and counted."""

    iteration: int
    passed: bool
    score: float
    progress: bool = False
    """It changed the tree or the check's result."""
    failed: bool = False
    """Its agent failed."""
    error: str = ""
    signature: str = ""
    """The error without what changes from run to run; '' when there is none to compare."""
    blocked: tuple[str, ...] = ()
    """The reasons why a passed check does not complete the loop."""
    moved_on: bool = False
    """Another error and a tree that was not seen before: whatever held the loop up holds no more."""
    low_deltas: int | None = None
    """The number of iterations in a row that brought little, this one included."""
    plateau: bool = False
    """So many that a person is told."""
    checkpoint: str = ""
    """The kind of checkpoint that its tree is kept as, `completion` or `iteration`; '' when it is not kept."""
    then: str | None = None
    """The next thing due: `complete` or `next`."""


class StuckNoticed(Event, frozen=True, kw_only=True, tag="stuck_noticed"):
    """The loop does not get on; the next prompt says so."""

    evidence: tuple[str, ...]


class Steered(Event, frozen=True, kw_only=True, tag="steered"):
    """A person's words stand first in the next prompt, once."""

    text: str


class CompletionBegan(Event, frozen=True, kw_only=True, tag="completion_began"):
    """The criterion is met as far as is known: it is verified once more."""

    why: str
    then: str | None = None
    """The first thing due then: `criterion`, `tests`, or nothing, `done`."""


class BackoffStarted(Event, frozen=True, kw_only=True, tag="backoff_started"):
    """Nothing starts before `until_us`: the agent failed, or its account may not ask the model for a while."""

    effect: EffectId
    until_us: int
    reason: str
    then: str = "next"


class BackoffEnded(Event, frozen=True, kw_only=True, tag="backoff_ended"):
    """The wait is over."""


class PauseAsked(Event, frozen=True, kw_only=True, tag="pause_asked"):
    """The loop pauses when this iteration ends."""

    reason: str


class PauseCancelled(Event, frozen=True, kw_only=True, tag="pause_cancelled"):
    """It goes on instead."""


class Concluded(Event, frozen=True, kw_only=True, tag="concluded"):
    """Nothing more will be tried; `Ended` follows."""

    stop: StopReason
    detail: str
    crashed: bool = False


class OptionsChanged(Event, frozen=True, kw_only=True, tag="options_changed"):
    """Options given on resuming, or edited by hand: names and values of the specification."""

    changes: dict[str, Any]
    agent: AgentChoice | None = None


class Recovered(Event, frozen=True, kw_only=True, tag="recovered"):
    """A successor goes on with the work of this loop."""

    by: str


class Imported(Event, frozen=True, kw_only=True, tag="imported"):
    """The loop was made of a state file without a journal."""

    iteration: int = 0
    checks: tuple[dict[str, Any], ...] = msgspec.field(default_factory=tuple)
    started_at: str | None = None
    ended_at: str | None = None
    """When it ended, if it did."""
    successes: int = 0
    failures: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    spent_s: int = 0
    """The part of the loop's own time that is used up; the time in which nobody drove it does not count."""
    tried: tuple[Tried, ...] = ()
    learnings: tuple[str, ...] = ()
    last_result: str = ""
    last_checkpoint: str | None = None
    made: int = 0
    """Iterations that took `worked_s` together."""
    worked_s: float = 0
    error: dict[str, Any] | None = None
    """Its `error_context`."""
    file: str = ""
    left_out: tuple[str, ...] = ()
    """The fields of the file that a loop has no place for."""


LoopEvent = (
    CommonEvent
    | LoopBegan
    | SavingStarted
    | TreeSaved
    | IterationStarted
    | AgentFinished
    | BudgetNeared
    | LaunchInterrupted
    | CheckStarted
    | CheckFinished
    | ConfirmationStarted
    | HumanAsked
    | HumanJudged
    | IterationFinished
    | StuckNoticed
    | Steered
    | CompletionBegan
    | BackoffStarted
    | BackoffEnded
    | PauseAsked
    | PauseCancelled
    | Concluded
    | OptionsChanged
    | Recovered
    | Imported
    | EditRefused
)
