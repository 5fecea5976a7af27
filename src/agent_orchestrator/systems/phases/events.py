"""The facts of a phased run's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id and the unit (`step`); the effect itself is built by `evolve`.
"""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.events import (
    BackoffEnded,
    CommonEvent,
    Concluded,
    EditRefused,
    Event,
    HumanAsked,
    HumanJudged,
    MergeStarted,
    QuestionsRaised,
)
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.launch_events import AgentLaunchFinished, JudgedCheckFinished
from agent_orchestrator.core.report import Learning
from agent_orchestrator.systems.phases.spec import PlanChange, PlanConflict, ReviewFinding


class EffectStarted(Event, frozen=True, kw_only=True):
    """Something begins for a unit."""

    effect: EffectId
    step: str
    purpose: str


class UnitHalted(Event, frozen=True, kw_only=True):
    """A unit does not go on as it was, and why."""

    step: str
    why: str


class TaskEvent(Event, frozen=True, kw_only=True):
    """Something about a task."""

    task: str


class SavingStarted(EffectStarted, frozen=True, kw_only=True, tag="saving_started"):
    """The tree is being committed or kept: `base`, `work`, `kept`, `fix`, `left`, `checkpoint`, `mend`."""


class TreeSaved(Event, frozen=True, kw_only=True, tag="tree_saved"):
    """The tree is kept, or `unavailable` says why not; `head` was its commit, `files` changed since the last checkpoint."""

    step: str
    purpose: str
    unavailable: str = ""
    commit: str | None = None
    branch_commit: str | None = None
    head: str | None = None
    files: tuple[str, ...] = ()
    diff: str = ""
    then: str = ""
    """The next step of the review when nothing is left to mend: `scan`, `criteria`."""


class AgentStarted(EffectStarted, frozen=True, kw_only=True, tag="agent_started"):
    """An agent is to work: `plan`, `execute`, `pre_task`, `post_task`, `on_demand`, `scan`, `repair`."""

    iteration: int = 0
    attempt: int = 1


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """The agent is over, `metered` if its costs are known; what it means follows as events of their own."""

    step: str
    purpose: str
    metered: bool = True
    cost_usd: float | None = None


class LearningsRecorded(TaskEvent, frozen=True, kw_only=True, tag="learnings_recorded"):
    """An agent wants later ones to know something."""

    iteration: int
    learnings: tuple[Learning, ...]


class LaunchInterrupted(UnitHalted, frozen=True, kw_only=True, tag="launch_interrupted"):
    """A launch was stopped; the same attempt goes on with a new one as soon as it may."""


class BackoffStarted(Event, frozen=True, kw_only=True, tag="backoff_started"):
    """A new attempt of the unit starts at `until_us`."""

    effect: EffectId
    step: str
    until_us: int
    reason: str


class MergeFinished(Event, frozen=True, kw_only=True, tag="merge_finished"):
    """The merge landed, conflicted, is tried `again` or `held` until a person makes room for it."""

    step: str
    verdict: str
    detail: str = ""
    again: bool = False
    held: bool = False


class CheckStarted(EffectStarted, frozen=True, kw_only=True, tag="check_started"):
    """A command is being run: a criterion of a task or of all (`criterion`, `verify`, `global`), or a tool."""

    criterion: str = ""


class CheckFinished(JudgedCheckFinished, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence of one command; `then` follows the last criterion of the whole: `reviewed`, `repair`, `unmet`."""

    step: str
    purpose: str
    criterion: str
    command: str
    then: str = ""


class AgentGaveUp(UnitHalted, frozen=True, kw_only=True, tag="agent_gave_up"):
    """An agent that is no task's failed for good: a person has to say whether it is tried again."""


class CheckAbandoned(UnitHalted, frozen=True, kw_only=True, tag="check_abandoned"):
    """The run goes on without what the agent was to do."""


class TaskStarted(TaskEvent, frozen=True, kw_only=True, tag="task_started"):
    """A task is at work, and holds the files that it declared."""

    branch: str = ""
    """The branch that it works on in a worktree of its own; empty in the run's own tree."""
    start: str = ""
    then: str = ""
    """The first step: `pre`, the supervisor looks first, or `execute`."""


class TaskBlocked(TaskEvent, frozen=True, kw_only=True, tag="task_blocked"):
    """A task could run beside others, but wants files that one of them holds."""

    by: str


class CriteriaReported(TaskEvent, frozen=True, kw_only=True, tag="criteria_reported"):
    """The agent's word on criteria that nobody can run; `status` is its word for the whole."""

    status: str
    criteria: dict[str, bool]


class IterationFinished(TaskEvent, frozen=True, kw_only=True, tag="iteration_finished"):
    """One iteration is over and counted; `error` says why it did not do it."""

    iteration: int
    met: dict[str, bool]
    error: str = ""


class SupervisorChecked(Event, frozen=True, kw_only=True, tag="supervisor_checked"):
    """The supervisor looked, and this is what it found."""

    step: str
    task: str
    check_type: str
    verdict: str
    action: str
    """The action by the matrix: `pass`, `auto_fix`, `re_plan`, `refuse`."""
    conflicts: tuple[PlanConflict, ...] = ()
    denied: tuple[str, ...] = ()
    """Criteria that it does not confirm."""
    changes: tuple[PlanChange, ...] = ()
    affected: tuple[str, ...] = ()
    summary: str = ""


class Intervened(TaskEvent, frozen=True, kw_only=True, tag="intervened"):
    """One conflict is settled."""

    check_type: str
    conflict_type: str
    severity: str
    action: str
    resolution: str
    fixed: bool = False


class PlanChanged(Event, frozen=True, kw_only=True, tag="plan_changed"):
    """The plan is another one from now on."""

    changes: tuple[PlanChange, ...]
    why: str


class TaskFailed(TaskEvent, frozen=True, kw_only=True, tag="task_failed"):
    """A task cannot go on by itself: a person has to say what becomes of it."""

    why: str


class TaskRetried(TaskEvent, frozen=True, kw_only=True, tag="task_retried"):
    """A task is tried again, its iterations counted anew; tasks skipped with it are wanted again."""

    comments: str = ""
    also: tuple[str, ...] = ()


class TasksSkipped(Event, frozen=True, kw_only=True, tag="tasks_skipped"):
    """A task is not to be done, nor what depends on it."""

    tasks: tuple[str, ...]
    why: str


class TaskCompleted(TaskEvent, frozen=True, kw_only=True, tag="task_completed"):
    """All criteria of a task are met, and its work is committed: this is a checkpoint."""

    number: int
    git_sha: str
    files: tuple[str, ...]


class CheckRequested(TaskEvent, frozen=True, kw_only=True, tag="check_requested"):
    """A person wants the supervisor to look, as soon as nothing else works on the tree."""


class RunPlanned(Event, frozen=True, kw_only=True, tag="run_planned"):
    """The run exists."""

    name: str
    phases: int
    tasks: int


class PlanApproved(Event, frozen=True, kw_only=True, tag="plan_approved"):
    """The phases are being executed from now on."""


class PhaseCompleted(Event, frozen=True, kw_only=True, tag="phase_completed"):
    """Nothing of a phase is left to do."""

    phase: int
    completed: bool = True
    """False for a phase that was skipped whole: it is no milestone."""


class MilestoneRecorded(Event, frozen=True, kw_only=True, tag="milestone_recorded"):
    """A phase's milestone exists as an issue, or as a file when `problem` or the lack of a remote says so."""

    phase: int
    url: str
    body: str = ""
    problem: str = ""


class ReviewStarted(Event, frozen=True, kw_only=True, tag="review_started"):
    """All phases are complete."""


class FindingsListed(Event, frozen=True, kw_only=True, tag="findings_listed"):
    """The findings to mend, the most urgent first, or what the scanner `fixed` itself; nothing ends the outer loop."""

    findings: tuple[ReviewFinding, ...]
    fixed: bool = False


class FindingSettled(Event, frozen=True, kw_only=True, tag="finding_settled"):
    """The finding at work was mended, or left with a reason."""

    left: str = ""
    then: str = ""
    """The next step: `repair` the next one, `scan` again, or the `criteria` of the whole."""


class ReviewPassed(Event, frozen=True, kw_only=True, tag="review_passed"):
    """Nothing is left to review; `left` says what was given up."""

    left: str = ""


class PullRequestRecorded(Event, frozen=True, kw_only=True, tag="pull_request_recorded"):
    """The work is offered as a pull request, or described in a file."""

    url: str
    body: str = ""
    problem: str = ""


class BoundsChanged(Event, frozen=True, kw_only=True, tag="bounds_changed"):
    """Safety bounds and options given on resuming, or edited by hand; cost and time are only how they are written."""

    changes: dict[str, Any]


class ListsEdited(Event, frozen=True, kw_only=True, tag="lists_edited"):
    """Task lists that a person edited in the state file."""

    changes: tuple[PlanChange, ...] = ()
    done: tuple[dict[str, Any], ...] = ()
    """Tasks declared to be completed, as `completed_tasks` has them."""
    undone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class AgentsDropped(Event, frozen=True, kw_only=True, tag="agents_dropped"):
    """Agents that a person took out of `active_agents`: each is stopped and spawned again."""

    steps: tuple[str, ...]


class Rewound(Event, frozen=True, kw_only=True, tag="rewound"):
    """State and plan are those of a checkpoint again."""

    to: int
    why: str


class Archived(Event, frozen=True, kw_only=True, tag="archived"):
    """Another run begins: this one's print-outs stand in the archive from now on."""


class Imported(Event, frozen=True, kw_only=True, tag="imported"):
    """The run as a state file without a journal had it, as far as it could be used; it goes on from the commit `start`."""

    stage: str
    started_us: int | None = None
    ended_us: int | None = None
    start: str = ""
    completed: tuple[dict[str, Any], ...] = ()
    supervisor: dict[str, Any]
    learnings: tuple[dict[str, Any], ...] = ()
    milestones: tuple[dict[str, Any], ...] = ()
    checkpoints: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    cost_usd: float | None = None
    unmetered: bool = False
    elapsed_s: float = 0.0


PhasesEvent = (
    CommonEvent
    | RunPlanned
    | SavingStarted
    | TreeSaved
    | AgentStarted
    | AgentFinished
    | LearningsRecorded
    | LaunchInterrupted
    | BackoffStarted
    | BackoffEnded
    | HumanAsked
    | HumanJudged
    | QuestionsRaised
    | PlanApproved
    | TaskStarted
    | TaskBlocked
    | MergeStarted
    | MergeFinished
    | CheckStarted
    | CheckFinished
    | CriteriaReported
    | IterationFinished
    | SupervisorChecked
    | Intervened
    | PlanChanged
    | TaskFailed
    | TaskRetried
    | TasksSkipped
    | TaskCompleted
    | PhaseCompleted
    | MilestoneRecorded
    | ReviewStarted
    | FindingsListed
    | FindingSettled
    | ReviewPassed
    | PullRequestRecorded
    | CheckRequested
    | AgentGaveUp
    | CheckAbandoned
    | BoundsChanged
    | ListsEdited
    | AgentsDropped
    | Rewound
    | Archived
    | EditRefused
    | Imported
    | Concluded
)
