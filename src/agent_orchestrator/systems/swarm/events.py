"""The facts of a swarm run's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id; the effect itself is built from the spec and the state by `evolve`.
"""

from __future__ import annotations

from agent_orchestrator.core.events import CommonEvent, Event
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.launch_events import AgentLaunchFinished, CheckLaunchFinished, LaunchFinished
from agent_orchestrator.systems.swarm.records import AttemptVerdict, ResultRecord, RunRecord


class BeadEvent(Event, frozen=True, kw_only=True):
    """A fact about one bead."""

    bead: str


class SwarmBegan(Event, frozen=True, kw_only=True, tag="swarm_began"):
    """The run exists; no bead is dispatched yet."""

    beads: int
    max_agents: int


class BeadQueued(BeadEvent, frozen=True, kw_only=True, tag="bead_queued"):
    """The bead could start, but another one works in its tree: it is next there."""

    behind: str


class AttemptStarted(BeadEvent, frozen=True, kw_only=True, tag="attempt_started"):
    """The bead's agent is to run: a new attempt, or one that was interrupted goes on."""

    effect: EffectId
    attempt: int
    beside: tuple[str, ...] = ()
    """Other beads at work on the same repository, which the agent is told about."""


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """The bead's agent is over, and this is what it left; what it means follows as an event of its own."""

    bead: str
    output: str = ""
    cost_usd: float | None = None
    tokens: int | None = None


class LaunchInterrupted(BeadEvent, frozen=True, kw_only=True, tag="launch_interrupted"):
    """The launch is over and the attempt is not: what is due (agent, verify, close or merge) goes on with a new launch."""

    due: str
    why: str


class VerificationQueued(BeadEvent, frozen=True, kw_only=True, tag="verification_queued"):
    """The verification is to run; `again` when its evidence was worth nothing."""

    again: bool = False


class VerificationStarted(BeadEvent, frozen=True, kw_only=True, tag="verification_started"):
    """The verification runs."""

    effect: EffectId


class VerificationFinished(CheckLaunchFinished, frozen=True, kw_only=True, tag="verification_finished"):
    """The evidence of one verification; what it means follows as an event of its own."""

    bead: str


class AttemptEnded(BeadEvent, frozen=True, kw_only=True, tag="attempt_ended"):
    """The attempt is over; with `will_retry` another one follows after a wait."""

    verdict: AttemptVerdict
    will_retry: bool = False


class WaitStarted(BeadEvent, frozen=True, kw_only=True, tag="wait_started"):
    """The bead waits: before its next attempt, or until an account may be used again."""

    effect: EffectId
    until_us: int
    reason: str


class WaitEnded(BeadEvent, frozen=True, kw_only=True, tag="wait_ended"):
    """The bead goes on as soon as there is room."""


class ClosingStarted(BeadEvent, frozen=True, kw_only=True, tag="closing_started"):
    """A bead that is done is closed in the tracker it came from."""

    effect: EffectId


class ClosingFinished(LaunchFinished, frozen=True, kw_only=True, tag="closing_finished"):
    """The tracker answered; a bead that could not be closed there is done all the same."""

    bead: str
    problem: str = ""


class StopAsked(BeadEvent, frozen=True, kw_only=True, tag="stop_asked"):
    """A person stops the bead; its attempt ends when nothing of it runs any more."""

    effect: EffectId
    at_us: int
    reason: str


class BeadDropped(BeadEvent, frozen=True, kw_only=True, tag="bead_dropped"):
    """A person stops a bead that runs no program: it is not tried, or not tried again."""

    reason: str


class MergeAsked(Event, frozen=True, kw_only=True, tag="merge_asked"):
    """The branches of these beads are to be merged, one after another, in this order."""

    beads: tuple[str, ...]
    into: str
    check: str | None = None
    """Must pass on the merged tree before the merge lands."""


class SavingStarted(BeadEvent, frozen=True, kw_only=True, tag="saving_started"):
    """The uncommitted work of the bead's agent is committed on its branch first."""

    effect: EffectId


class SavingFinished(BeadEvent, frozen=True, kw_only=True, tag="saving_finished"):
    """The branch is ready to be merged; with a problem it is not merged."""

    effect: EffectId
    commit: str | None = None
    problem: str = ""


class MergeStarted(BeadEvent, frozen=True, kw_only=True, tag="merge_started"):
    """The bead's branch is being merged."""

    effect: EffectId


class MergeFinished(BeadEvent, frozen=True, kw_only=True, tag="merge_finished"):
    """The merge is over; only `landed` moved the target."""

    effect: EffectId
    verdict: str
    detail: str = ""
    commit: str | None = None


class BeadsReset(Event, frozen=True, kw_only=True, tag="beads_reset"):
    """A person wants these beads tried again: as many attempts more, the numbers go on."""

    beads: tuple[str, ...]


class BeadsReleased(Event, frozen=True, kw_only=True, tag="beads_released"):
    """A newer run has these beads: their newest records are its own from now on."""

    beads: tuple[str, ...]


class OptionsChanged(Event, frozen=True, kw_only=True, tag="options_changed"):
    """Limits given when the run was resumed; None leaves what was."""

    max_agents: int | None = None
    stop_after_failures: int | None = None


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited record was not adopted: records are what happened."""

    path: str


class Imported(Event, frozen=True, kw_only=True, tag="imported"):
    """An attempt that was made elsewhere, as its records had it, in the full format."""

    started_us: int
    """0 where the record does not say."""
    run: RunRecord
    result: ResultRecord


SwarmEvent = (
    CommonEvent
    | SwarmBegan
    | BeadQueued
    | AttemptStarted
    | AgentFinished
    | LaunchInterrupted
    | VerificationQueued
    | VerificationStarted
    | VerificationFinished
    | AttemptEnded
    | WaitStarted
    | WaitEnded
    | ClosingStarted
    | ClosingFinished
    | StopAsked
    | BeadDropped
    | MergeAsked
    | SavingStarted
    | SavingFinished
    | MergeStarted
    | MergeFinished
    | BeadsReset
    | BeadsReleased
    | OptionsChanged
    | EditRefused
    | Imported
)
