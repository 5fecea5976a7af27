"""A phased run in memory. Only `evolve` changes any of this."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.unit import UnitNeeds, UnitRecord, UnitView
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.phases.events import Intervened
from agent_orchestrator.systems.phases.spec import Bounds, Lesson, PhasesSpec, PlanTask
from agent_orchestrator.systems.phases.works import PLAN, PhasesWork, TaskWork


class PhasesStatus(StrEnum):
    """The seed's words."""

    PLANNING = "planning"
    EXECUTING = "executing"
    REVIEWING = "reviewing"
    COMPLETED = "completed"
    FAILED = "failed"


class CompletedTask(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `completed_tasks`."""

    task: str
    name: str
    completed: str
    iterations: int
    time_elapsed: str
    cost: str
    files_modified: list[str]
    success_criteria_met: dict[str, bool]


class Intervention(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `supervisor.interventions`."""

    timestamp: str
    check_type: str
    task: str
    conflict_type: str
    severity: str
    action: str
    resolution: str


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `milestones`."""

    phase: int
    name: str
    completed: str
    issue_url: str


class CheckpointEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `checkpoints`."""

    timestamp: str
    phase: int
    task: str
    git_sha: str
    state_snapshot: str


class Supervisor(msgspec.Struct, kw_only=True):
    """`supervisor` in the state file."""

    enabled: bool
    checks_performed: int
    conflicts_detected: int
    auto_fixes_applied: int
    re_plans_triggered: int
    last_check: str | None = None
    interventions: list[Intervention]

    @classmethod
    def fresh(cls, *, enabled: bool) -> Supervisor:
        """Make one that has not looked yet."""
        return cls(
            enabled=enabled,
            checks_performed=0,
            conflicts_detected=0,
            auto_fixes_applied=0,
            re_plans_triggered=0,
            interventions=[],
        )


class CheckpointSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a checkpoint besides its document by which the run can go back to it; time and money stay spent."""

    body: Any
    """The state file as it was: encoded when it is written, for folding makes hundreds and writes none."""
    git_sha: str
    phase: int
    plan: tuple[PlanTask, ...]
    completed: tuple[CompletedTask, ...]
    skipped: tuple[tuple[str, str], ...]
    supervisor: Supervisor
    learnings: int
    milestones: int
    checkpoints: tuple[CheckpointEntry, ...]


class UnitStanding(StrEnum):
    """The status of a unit, in the words of the commands that show all systems."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING_ON_HUMAN"
    COMPLETED = "COMPLETED"
    SKIPPED = "SKIPPED"


class PhasesState:
    """One run of a task document."""

    def __init__(self, spec: PhasesSpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.lifecycle, self.doing = Lifecycle(), Doing()
        plan = spec.plan
        self.plan: dict[str, PlanTask] = {task.id: task for task in plan.tasks}
        """In the order in which tasks are done; a change of the plan replaces it."""
        self.bounds: Bounds = plan.bounds
        self.max_parallel = spec.max_parallel
        self.stage = PhasesStatus.PLANNING
        self.phase = 0
        """The index of the phase at work."""
        self.works: dict[str, PhasesWork] = {}
        """Units at work."""
        self.records: dict[str, UnitRecord] = {}
        """The newest work of every unit, also where it is over."""
        self.open_work(PhasesWork(unit=PLAN, due="base"))
        self.completed: dict[str, CompletedTask] = {}
        self.skipped: dict[str, str] = {}
        self.supervisor = Supervisor.fresh(enabled=plan.supervision.enabled)
        self.learnings: list[Lesson] = []
        self.milestones: list[Milestone] = []
        self.checkpoints: list[CheckpointEntry] = []
        self.snapshots: dict[int, CheckpointSnapshot] = {}
        self.numbered = 0
        """The highest number that a checkpoint ever had: numbers are not used again."""
        self.files: dict[str, str] = {}
        """Bodies of milestones that are files, by name."""
        self.pull_request = ""
        self._begin_knowing(context)

    def _begin_knowing(self, context: Context) -> None:
        """Nothing was done, nothing was spent."""
        self.start: str | None = None
        """The commit that the next task's changes are counted from."""
        self.questions: tuple[str, ...] = ()
        self.answers = ""
        self.wanted_checks: list[str] = []
        self.trouble = ""
        """Why the run pauses as soon as it may: git refuses."""
        self.conclusion: tuple[StopReason, str] | None = None
        self.cost_usd: float | None = None
        self.unmetered = False
        """Some agent did not say what it cost."""
        self.elapsed_us = 0
        self.ticking_us: int | None = None
        """Since when something is at work; the time before is in `elapsed_us`."""
        self.boot = ""
        """The boot in which the run was taken up last."""
        self.started_us = context.created_us
        self.ended_us: int | None = None
        self.updated_us = context.created_us
        self.archived = False
        self.failures: dict[str, str] = {}
        """Why tasks failed, by task."""
        self.starts: dict[str, int] = {}
        """How often a task was started: each time on a branch of its own."""
        self.replans: dict[str, int] = {}
        """How often the plan was changed before a task."""
        self.comments: dict[str, str] = {}
        """What people said about tasks that are not at work."""
        self.rejected = ""
        """What a person said who rejected the plan or the whole work; told when the run goes on after all."""
        self.warnings: list[str] = []

    @property
    def status(self) -> PhasesStatus:
        """The status of the run in the seed's words."""
        if self.lifecycle.ended:
            return PhasesStatus.COMPLETED if self.lifecycle.stop is StopReason.COMPLETED else PhasesStatus.FAILED
        return self.stage

    def open_work(self, work: PhasesWork) -> None:
        """Let a unit be at work; launches are counted on where it was before."""
        before = self.records.get(work.unit)
        if before is not None:
            work.launches, work.history = before.launches, before.history
            work.evidence, work.warnings = before.evidence, before.warnings
        self.works[work.unit] = self.records[work.unit] = work

    def name_effect(self, unit: str, iteration: int, attempt: int, kind: str) -> EffectId:
        """Give the id of a unit's next effect."""
        record = self.records.get(unit)
        launch = record.launches + 1 if record is not None else 1
        return effect_id(self.context.run, UnitId(unit), iteration, attempt, launch, kind, self.context.generation)

    @property
    def active_tasks(self) -> list[TaskWork]:
        """Tasks at work, the lowest id first; those that only wait for files are not."""
        found = [work for work in self.works.values() if isinstance(work, TaskWork) and not work.blocked]
        return sorted(found, key=lambda work: order_of(work.task))

    @property
    def due(self) -> list[str]:
        """Units that have something to begin."""
        return [work.unit for work in self.works.values() if work.due is not None]

    def pending(self) -> list[PlanTask]:
        """List tasks that are not started yet, in the order of the plan."""
        done, skipped, works = self.completed, self.skipped, self.works
        return [task for unit, task in self.plan.items() if unit not in done and unit not in skipped and unit not in works]

    def tasks_of(self, phase: int) -> list[PlanTask]:
        """List a phase's tasks, in the order of the plan."""
        return [task for task in self.plan.values() if task.phase == phase]

    def elapsed_at(self, at_us: int) -> int:
        """Give the time at work so far: waiting, pauses and rests left out."""
        return self.elapsed_us + (max(0, at_us - self.ticking_us) if self.ticking_us is not None else 0)

    @property
    def steps(self) -> dict[str, Any]:
        """Tasks and other units, as commands for all systems show them."""
        begun = [unit for unit, record in self.records.items() if record.history]
        return {unit: self._view(unit) for unit in dict.fromkeys([*self.plan, *begun, *self.works])}

    def _view(self, unit: str) -> UnitView:
        work, record = self.works.get(unit), self.records.get(unit)
        history = record.history if record is not None else ()
        started = iso(history[0].started_us) if history else None
        done = self.completed.get(unit)
        if work is not None:
            status = UnitStanding.WAITING if work.asking and work.due is None else UnitStanding.RUNNING
            return UnitView(status, work.attempt, work.iteration, started, None, work.trouble or None)
        ended = iso(history[-1].ended_us) if history and history[-1].ended_us is not None else None
        if done is not None:
            return UnitView(UnitStanding.COMPLETED, 1, done.iterations, started, ended, None)
        if unit in self.skipped:
            return UnitView(UnitStanding.SKIPPED, 1, 0, started, ended, self.skipped[unit])
        if unit in self.plan:
            return UnitView(UnitStanding.PENDING, 0, 0, started, ended, self.failures.get(unit))
        return UnitView(UnitStanding.COMPLETED, 1, 0, started, ended, None)

    @property
    def specs(self) -> dict[str, Any]:
        """The needs of each unit, as far as commands for all systems look at them."""
        return {unit: self.plan.get(unit, _NEEDS_NOTHING) for unit in self.steps}


_NEEDS_NOTHING = UnitNeeds()


NEEDS_GONE = "what it needs will not be done"
_DEPENDS = "it depends on task "


def because_of(task: str) -> str:
    """Say why a task is skipped that depends on one that is."""
    return f"{_DEPENDS}{task}"


def skipped_with(state: PhasesState, task: str) -> tuple[str, ...]:
    """Tasks that were skipped only because they need this one, directly or not, and nothing else that is skipped."""
    back = {task}
    for one in state.plan.values():  # What a task needs comes before it.
        why = state.skipped.get(one.id, "")
        open_needs = [need for need in one.needs if need in state.skipped]
        if (why == NEEDS_GONE or why.startswith(_DEPENDS)) and open_needs and back.issuperset(open_needs):
            back.add(one.id)
    return tuple(one for one in state.plan if one in back and one != task)


def order_of(task: str) -> tuple[int, ...]:
    """Sorts task ids as numbers: 1.2 comes before 1.10."""
    return tuple(int(part) for part in task.split("."))


def as_intervention(event: Intervened, at_us: int) -> Intervention:
    """Make the entry that a settled conflict leaves."""
    return Intervention(
        timestamp=stamp(at_us),
        check_type=event.check_type,
        task=event.task,
        conflict_type=event.conflict_type,
        severity=event.severity,
        action=event.action,
        resolution=event.resolution,
    )
