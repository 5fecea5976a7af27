"""The facts of a phased run's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id and the unit (`step`); the effect itself is built by `evolve`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.events import CommonEvent, Event, StopReason
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.report import Learning
from agent_orchestrator.systems.phases.spec import Task


class Conflict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the supervisor found, judged by its type."""

    type: str
    severity: str
    action: str
    details: str = ""
    recommendation: str = ""
    differs: str = ""
    """What the report said instead, where it said something else."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the review found."""

    priority: str
    issue: str
    file: str = ""


class PlanChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of the plan: `add`, `remove`, `describe` or `move`."""

    action: str
    task: str
    made: Task | None = None
    """The task as it is from now on, where it is added or described anew."""
    before: str | None = None
    """The task of the same phase that it is put before; None for the end."""


class RunPlanned(Event, frozen=True, kw_only=True, tag="run_planned"):
    """The run exists."""

    name: str
    phases: int
    tasks: int


class SavingStarted(Event, frozen=True, kw_only=True, tag="saving_started"):
    """The tree is being committed or kept: `base`, `work`, `kept`, `fix`, `left`, `checkpoint`, `mend`."""

    effect: str
    step: str
    purpose: str


class TreeSaved(Event, frozen=True, kw_only=True, tag="tree_saved"):
    """The tree is kept, or `unavailable` says why it is not."""

    step: str
    purpose: str
    unavailable: str = ""
    commit: str | None = None
    branch_commit: str | None = None
    head: str | None = None
    """The branch's commit before."""
    files: tuple[str, ...] = ()
    """What differs from the last checkpoint."""
    diff: str = ""


class AgentStarted(Event, frozen=True, kw_only=True, tag="agent_started"):
    """An agent is to work: `plan`, `execute`, `pre_task`, `post_task`, `on_demand`, `scan`, `repair`."""

    effect: str
    step: str
    purpose: str
    iteration: int = 0
    attempt: int = 1


class AgentFinished(Event, frozen=True, kw_only=True, tag="agent_finished"):
    """The agent is over, and this is what it said; what it means follows as events of their own."""

    effect: str
    step: str
    purpose: str
    started_us: int
    ended_us: int
    exit_code: int | None = None
    failure: Failure | None = None
    summary: str = ""
    metered: bool = True
    """Whether it is known what it cost."""
    cost_usd: float | None = None
    session: str | None = None
    tail: str = ""
    warnings: tuple[str, ...] = ()


class LearningsRecorded(Event, frozen=True, kw_only=True, tag="learnings_recorded"):
    """What an agent wants later ones to know."""

    task: str
    iteration: int
    learnings: tuple[Learning, ...]


class LaunchInterrupted(Event, frozen=True, kw_only=True, tag="launch_interrupted"):
    """What ran was stopped; the same attempt goes on with a new launch as soon as it may."""

    step: str
    why: str


class BackoffStarted(Event, frozen=True, kw_only=True, tag="backoff_started"):
    """A new attempt of the unit starts at `until_us`."""

    effect: str
    step: str
    until_us: int
    reason: str


class BackoffEnded(Event, frozen=True, kw_only=True, tag="backoff_ended"):
    """What waited may start."""

    step: str


class HumanAsked(Event, frozen=True, kw_only=True, tag="human_asked"):
    """A person is asked about `questions`, the `plan`, a `replan`, a `task` that failed, a `check`, the `review`."""

    effect: str
    step: str
    about: str
    question: str
    after: str = ""


class HumanJudged(Event, frozen=True, kw_only=True, tag="human_judged"):
    """A person answered; what it means follows."""

    step: str
    about: str
    approved: bool
    comments: str = ""


class QuestionsRaised(Event, frozen=True, kw_only=True, tag="questions_raised"):
    """What the planner wants to know before anything starts."""

    questions: tuple[str, ...]


class PlanApproved(Event, frozen=True, kw_only=True, tag="plan_approved"):
    """The phases are being executed from now on."""


class TaskStarted(Event, frozen=True, kw_only=True, tag="task_started"):
    """A task is at work, and holds the files that it declared."""

    task: str
    branch: str = ""
    """The branch that it works on in a worktree of its own; empty in the run's own tree."""
    start: str = ""


class TaskBlocked(Event, frozen=True, kw_only=True, tag="task_blocked"):
    """A task could run beside others, but wants files that one of them holds."""

    task: str
    by: str


class CheckStarted(Event, frozen=True, kw_only=True, tag="check_started"):
    """A command is being run: a criterion of a task or of all (`criterion`, `verify`, `global`), or a tool."""

    effect: str
    step: str
    purpose: str
    criterion: str = ""


class CheckFinished(Event, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence of one command."""

    effect: str
    step: str
    purpose: str
    criterion: str
    command: str
    started_us: int
    ended_us: int
    exit_code: int | None = None
    failure: Failure | None = None
    tail: str = ""
    moved: bool = False
    """The working tree changed while it ran."""
    again: bool = False
    """It is run once more: the evidence is worth nothing."""

    @property
    def passed(self) -> bool:
        """Whether it is evidence of success."""
        return self.failure is None and self.exit_code == 0 and not self.moved


class CriteriaReported(Event, frozen=True, kw_only=True, tag="criteria_reported"):
    """What the agent says of criteria that nobody can run; `status` is its word for the whole."""

    task: str
    status: str
    criteria: dict[str, bool]


class IterationFinished(Event, frozen=True, kw_only=True, tag="iteration_finished"):
    """One iteration is over and counted."""

    task: str
    iteration: int
    met: dict[str, bool]
    error: str = ""
    """Why it did not do it; empty when it did."""


class SupervisorChecked(Event, frozen=True, kw_only=True, tag="supervisor_checked"):
    """The supervisor looked, and this is what it found."""

    step: str
    task: str
    check_type: str
    verdict: str
    action: str
    """What follows by the matrix: `pass`, `auto_fix`, `re_plan`, `refuse`."""
    conflicts: tuple[Conflict, ...] = ()
    denied: tuple[str, ...] = ()
    """Criteria that it does not confirm."""
    changes: tuple[PlanChange, ...] = ()
    affected: tuple[str, ...] = ()
    summary: str = ""


class Intervened(Event, frozen=True, kw_only=True, tag="intervened"):
    """One conflict is settled."""

    task: str
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


class TaskFailed(Event, frozen=True, kw_only=True, tag="task_failed"):
    """A task cannot go on by itself: a person has to say what becomes of it."""

    task: str
    why: str


class TaskRetried(Event, frozen=True, kw_only=True, tag="task_retried"):
    """A task is tried again, its iterations counted anew; tasks skipped with it are wanted again."""

    task: str
    comments: str = ""
    also: tuple[str, ...] = ()


class TasksSkipped(Event, frozen=True, kw_only=True, tag="tasks_skipped"):
    """A task is not to be done, nor what depends on it."""

    tasks: tuple[str, ...]
    why: str


class TaskCompleted(Event, frozen=True, kw_only=True, tag="task_completed"):
    """All criteria of a task are met, and its work is committed: this is a checkpoint."""

    task: str
    number: int
    git_sha: str
    files: tuple[str, ...]


class MergeStarted(Event, frozen=True, kw_only=True, tag="merge_started"):
    """A task's branch is being merged into the run's."""

    effect: str
    step: str


class MergeFinished(Event, frozen=True, kw_only=True, tag="merge_finished"):
    """What came of the merge."""

    step: str
    verdict: str
    detail: str = ""
    again: bool = False
    held: bool = False
    """A person has to make room for it."""


class PhaseCompleted(Event, frozen=True, kw_only=True, tag="phase_completed"):
    """Nothing of a phase is left to do."""

    phase: int
    completed: bool = True
    """Whether anything of it was done; a phase that was skipped whole is no milestone."""


class MilestoneRecorded(Event, frozen=True, kw_only=True, tag="milestone_recorded"):
    """A phase's milestone exists as an issue, or as a file when `problem` or the lack of a remote says so."""

    phase: int
    url: str
    body: str = ""
    problem: str = ""


class ReviewStarted(Event, frozen=True, kw_only=True, tag="review_started"):
    """All phases are complete."""


class FindingsListed(Event, frozen=True, kw_only=True, tag="findings_listed"):
    """What is to be mended, the most urgent first; nothing ends the outer loop."""

    findings: tuple[Finding, ...]
    fixed: bool = False
    """The scanner mended something itself."""


class FindingSettled(Event, frozen=True, kw_only=True, tag="finding_settled"):
    """The finding at work was mended, or left with a reason."""

    left: str = ""


class ReviewPassed(Event, frozen=True, kw_only=True, tag="review_passed"):
    """Nothing is left to review; `left` says what was given up."""

    left: str = ""


class PullRequestRecorded(Event, frozen=True, kw_only=True, tag="pull_request_recorded"):
    """The work is offered as a pull request, or described in a file."""

    url: str
    body: str = ""
    problem: str = ""


class CheckRequested(Event, frozen=True, kw_only=True, tag="check_requested"):
    """A person wants the supervisor to look, as soon as nothing else works on the tree."""

    task: str


class AgentGaveUp(Event, frozen=True, kw_only=True, tag="agent_gave_up"):
    """An agent that is no task's failed for good: a person has to say whether it is tried again."""

    step: str
    why: str


class CheckAbandoned(Event, frozen=True, kw_only=True, tag="check_abandoned"):
    """What the agent was to do is done without."""

    step: str
    why: str


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


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited state file was not adopted."""

    problems: tuple[str, ...]


class Concluded(Event, frozen=True, kw_only=True, tag="concluded"):
    """Nothing more will be tried; `Ended` follows."""

    stop: StopReason
    detail: str


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
    | Concluded
)
