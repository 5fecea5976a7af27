"""A unit at work: what it does next, what it did last, and what it knows. Only `evolve` changes any of this.

`due` is what the unit does as soon as it may; None while it does something. The words are the keys of `advance`'s table.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.systems.phases.events import SupervisorChecked
from agent_orchestrator.systems.phases.spec import ReviewFinding

PLAN, REVIEW, CHECK, PULL_REQUEST = "plan", "review", "check", "pull-request"


def milestone_unit(phase: int) -> str:
    """Name the unit that records a phase's milestone."""
    return f"milestone-{phase + 1}"


class PhasesWork(UnitRecord, kw_only=True):
    """One unit at work."""

    unit: str
    due: str | None = None
    purpose: str = ""
    """Of the agent, command or commit that is at work, or was last."""
    criterion: str = ""
    command: str = ""
    """Of the command that is at work, or was last."""
    iteration: int = 0
    attempt: int = 1
    agent_since_us: int | None = None
    """When the agent at work was spawned; kept while it waits for another launch."""
    asking: str = ""
    trouble: str = ""
    """The reason why it cannot go on by itself."""
    verdict: SupervisorChecked | None = None
    """The supervisor's last finding, while it is not settled."""
    diff: str = ""
    """The diff that the supervisor is shown."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Words of people and the supervisor for the agent."""

    def begin(self, purpose: str | None = None) -> None:
        """Begin something that is no program: its number is taken, and nothing is due."""
        self.launches += 1
        self.purpose, self.due = purpose or self.purpose, None


class TaskWork(PhasesWork, kw_only=True):
    """A task at work."""

    task: str
    locked_us: int
    """Since when it holds the files that it declared."""
    blocked: bool = False
    """It waits for files that another task holds."""
    branch: str = ""
    start: str | None = None
    """The commit that it starts from, when it does not work in the run's own tree."""
    files: tuple[str, ...] = ()
    """The files that it changed, by its last commit."""
    first: int = 0
    """Iterations made before it was tried again."""
    failed_in_a_row: int = 0
    at: int = 0
    """The criterion at work, as an index."""
    met: dict[str, bool] = msgspec.field(default_factory=dict)
    said: dict[str, bool] = msgspec.field(default_factory=dict)
    errors: list[str] = msgspec.field(default_factory=list)
    """The reasons why criteria of this iteration are not met."""
    checks: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Commands of this iteration that failed, by criterion, with the end of what they wrote."""
    status: str = ""
    """The agent's word for its iteration."""
    fixed: bool = False
    """Mended by the supervisor: the criteria are looked at once more."""
    replans: int = 0
    snapshot: str | None = None
    """The tree as it was before the supervisor looked."""
    worked_us: int = 0
    cost_usd: float | None = None
    unmetered: bool = False


class ReviewWork(PhasesWork, kw_only=True):
    """The outer loop at work."""

    findings: list[ReviewFinding] = msgspec.field(default_factory=list)
    looping: bool = True
    at: int = 0
    """The global criterion at work, as an index."""
    failing: list[ReviewFinding] = msgspec.field(default_factory=list)
    """Global criteria that fail, as findings."""
    left: list[str] = msgspec.field(default_factory=list)


class OnDemandWork(PhasesWork, kw_only=True):
    """A check that a person asked for."""

    task: str


class MilestoneWork(PhasesWork, kw_only=True):
    """A milestone or the pull request being recorded; `phase` is None for the latter."""

    phase: int | None = None


def task_of(work: PhasesWork) -> str:
    """Give the name that the state file has for the task of a unit."""
    if isinstance(work, TaskWork | OnDemandWork):
        return work.task
    return REVIEW if isinstance(work, ReviewWork) else work.unit
