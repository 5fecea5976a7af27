"""Facts about tasks, the supervisor and the plan."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.events import Event
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


class PlanChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of the plan: `add`, `remove`, `describe` or `move`."""

    action: str
    task: str
    made: Task | None = None
    """The task as it is from now on, where it is added or described anew."""
    before: str | None = None
    """The task of the same phase that it is put before; None for the end."""


class TaskStarted(Event, frozen=True, kw_only=True, tag="task_started"):
    """A task is at work, and holds the files that it declared."""

    task: str
    branch: str = ""
    """The branch that it works on in a worktree of its own; empty in the run's own tree."""
    start: str = ""
    then: str = ""
    """What it begins with: `pre`, the supervisor looks first, or `execute`."""


class TaskBlocked(Event, frozen=True, kw_only=True, tag="task_blocked"):
    """A task could run beside others, but wants files that one of them holds."""

    task: str
    by: str


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


class CheckRequested(Event, frozen=True, kw_only=True, tag="check_requested"):
    """A person wants the supervisor to look, as soon as nothing else works on the tree."""

    task: str
