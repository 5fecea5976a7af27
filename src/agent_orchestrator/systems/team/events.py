"""The facts of a team's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id; the effect itself is built from the spec and the state by `evolve`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.events import (
    BackoffEnded,
    CommonEvent,
    Concluded,
    Event,
    HumanAsked,
    HumanJudged,
    MergeStarted,
    QuestionsRaised,
)
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Commit, MergeVerdict
from agent_orchestrator.core.launch_events import AgentLaunchFinished, JudgedCheckFinished
from agent_orchestrator.systems.team.roles import Purpose
from agent_orchestrator.systems.team.shapes import ImportedGroup


class TeamBegan(Event, frozen=True, kw_only=True, tag="team_began"):
    """The team exists."""

    requirements: int


class Decided(Event, frozen=True, kw_only=True, tag="decided"):
    """One line of the story: what was decided, and why."""

    decision: str
    reasoning: str


class AgentStarted(Event, frozen=True, kw_only=True, tag="agent_started"):
    """An agent is to work: a new turn of the unit, or the same one again."""

    effect: EffectId
    step: str
    purpose: Purpose
    again: bool = False


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """An agent is over; what its report means follows as an event of its own."""

    step: str


class LaunchInterrupted(Event, frozen=True, kw_only=True, tag="launch_interrupted"):
    """A launch was stopped; the same thing goes on with a new one when it may."""

    step: str


class RetryScheduled(Event, frozen=True, kw_only=True, tag="retry_scheduled"):
    """The unit's turn, or its merge, is tried again at `until_us`; `attempt` is the next one."""

    effect: EffectId
    step: str
    until_us: int
    attempt: int
    error: str


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group as the project manager planned it, checked and with a branch that is its own."""

    id: str
    name: str
    tasks: tuple[str, ...] = ()
    files_affected: tuple[str, ...] = ()
    branch_name: str
    can_parallel: bool = True
    depends_on: tuple[str, ...] = ()
    complexity: str | None = None
    estimated_effort_minutes: float | None = None


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as the project manager planned it."""

    id: str
    description: str = ""
    group_id: str = ""


class PlanMade(Event, frozen=True, kw_only=True, tag="plan_made"):
    """The plan, or more of it."""

    mode: str
    mode_reasoning: str = ""
    tasks: tuple[PlannedTask, ...] = ()
    groups: tuple[PlannedGroup, ...] = ()


class GroupEvent(Event, frozen=True, kw_only=True):
    """Something about a group."""

    group: str


class GroupSerialised(GroupEvent, frozen=True, kw_only=True, tag="group_serialised"):
    """A group that could start waits, because one at work changes the same files."""

    behind: str
    paths: tuple[str, ...] = ()


class WorkReported(GroupEvent, frozen=True, kw_only=True, tag="work_reported"):
    """A developer reported on the work."""

    status: str
    summary: str = ""
    notes: str = ""
    unit_tests: dict[str, int] | None = None
    blocker: str = ""
    then: str = "qa"
    """The next turn when the tree is saved: qa, review, or the developer again."""


class SavingStarted(Event, frozen=True, kw_only=True, tag="saving_started"):
    """The agent's work is being committed on the group's branch."""

    effect: EffectId
    step: str


class WorkSaved(GroupEvent, frozen=True, kw_only=True, tag="work_saved"):
    """The branch as it is now, or why nothing could be saved."""

    unavailable: str = ""
    head: str | None = None
    files_modified: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    diff: str = ""


class CollisionForeseen(GroupEvent, frozen=True, kw_only=True, tag="collision_foreseen"):
    """The group's branch and that of one that is ahead cannot both be merged as they are: it waits and is repaired then."""

    behind: tuple[str, ...]
    paths: tuple[str, ...] = ()


class MessageSent(Event, frozen=True, kw_only=True, tag="message_sent"):
    """A message from one role to another, as its file has it."""

    box: str
    group: str
    message: dict[str, Any]


class QaReported(GroupEvent, frozen=True, kw_only=True, tag="qa_reported"):
    """QA reported on the work."""

    passed: bool
    test_results: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    failures: tuple[str, ...] = ()
    summary: str = ""


class Reviewed(GroupEvent, frozen=True, kw_only=True, tag="reviewed"):
    """The tech lead decided: approved, changes_requested or unblocked."""

    decision: str
    feedback: str = ""
    points: tuple[str, ...] = ()
    """The points to be done, one by one."""
    quality: dict[str, float] = msgspec.field(default_factory=dict)


class LimitReached(Event, frozen=True, kw_only=True, tag="limit_reached"):
    """The unit cannot go on by itself: a person is asked next."""

    step: str
    about: str
    description: str
    question: str


class MergeFinished(Event, frozen=True, kw_only=True, tag="merge_finished"):
    """The merge is over; what it means follows."""

    effect: EffectId
    group: str
    verdict: MergeVerdict
    detail: str = ""
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    conflict_text: str = ""
    tail: str = ""
    retry_at_us: int | None = None


class GroupCompleted(GroupEvent, frozen=True, kw_only=True, tag="group_completed"):
    """The group's work is on the target branch."""

    commit: str | None = None


class RequirementAdded(Event, frozen=True, kw_only=True, tag="requirement_added"):
    """A person wants something more."""

    text: str
    check: str | None = None


class CompletionClaimed(Event, frozen=True, kw_only=True, tag="completion_claimed"):
    """The project manager says that everything is done; nobody believes it yet."""

    evidence: dict[int, str] = msgspec.field(default_factory=dict)
    """By requirement, what the project manager points at."""


class SentBack(Event, frozen=True, kw_only=True, tag="sent_back"):
    """The project manager has to look again."""

    reasons: tuple[str, ...]
    open: tuple[int, ...] = ()
    """The requirements that are not met."""


class CheckStarted(Event, frozen=True, kw_only=True, tag="check_started"):
    """A requirement's own check is being run on what was merged."""

    effect: EffectId
    step: str
    requirement: int


class CheckFinished(JudgedCheckFinished, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence for one requirement."""

    step: str
    requirement: int


class RequirementMet(Event, frozen=True, kw_only=True, tag="requirement_met"):
    """One requirement has what it needs to count: a check that passed, or the tech lead's confirmation."""

    requirement: int
    by: str
    evidence: str = ""


class ScopeReduced(Event, frozen=True, kw_only=True, tag="scope_reduced"):
    """A person approved of ending without these requirements."""

    requirements: tuple[int, ...]
    comments: str = ""


class OptionsChanged(Event, frozen=True, kw_only=True, tag="options_changed"):
    """Limits given on resuming: names and values of the specification."""

    changes: dict[str, Any]


class StatusesEdited(Event, frozen=True, kw_only=True, tag="statuses_edited"):
    """A person changed files: the status of groups (in the words of group_status.json) and of tasks."""

    groups: dict[str, str] = msgspec.field(default_factory=dict)
    tasks: dict[str, str] = msgspec.field(default_factory=dict)


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited file was not adopted."""

    path: str
    problems: tuple[str, ...]


class Imported(Event, frozen=True, kw_only=True, tag="imported"):
    """The plan's groups as files without a journal had them, as far as these could be used, and their history."""

    groups: dict[str, ImportedGroup]
    tasks: dict[str, str] = msgspec.field(default_factory=dict)
    messages: dict[str, tuple[dict[str, Any], ...]] = msgspec.field(default_factory=dict)
    decisions: tuple[dict[str, Any], ...] = ()
    spawns: int = 0
    iteration: int = 0
    plan_iteration: int = 0
    started_us: int | None = None
    ended_us: int | None = None


TeamEvent = (
    CommonEvent
    | TeamBegan
    | Decided
    | AgentStarted
    | AgentFinished
    | LaunchInterrupted
    | RetryScheduled
    | BackoffEnded
    | PlanMade
    | QuestionsRaised
    | HumanAsked
    | HumanJudged
    | GroupSerialised
    | WorkReported
    | SavingStarted
    | WorkSaved
    | CollisionForeseen
    | MessageSent
    | QaReported
    | Reviewed
    | LimitReached
    | MergeStarted
    | MergeFinished
    | GroupCompleted
    | RequirementAdded
    | CompletionClaimed
    | SentBack
    | CheckStarted
    | CheckFinished
    | RequirementMet
    | ScopeReduced
    | Concluded
    | OptionsChanged
    | StatusesEdited
    | EditRefused
    | Imported
)
