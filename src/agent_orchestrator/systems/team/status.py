"""A team as its files and commands show it, derived from the one state: nothing here is stored twice."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.unit import UnitNeeds, UnitView
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.team.state import PM, Group, Stage, TeamState, TeamTask

NOBODY = "none"

_STATUS = {
    Stage.PENDING: "pending",
    Stage.SAVE: "dev_working",
    Stage.CONSULT: "dev_blocked",
    Stage.MERGE: "tech_review",
    Stage.HELD: "changes_requested",
    Stage.COMPLETE: "complete",
}
_FAILED = {"qa": "qa_failed", "review": "changes_requested", "conflict": "changes_requested", "red": "changes_requested"}
_PHASE = {Stage.QA: "qa_testing", Stage.REVIEW: "tech_review", Stage.MERGE: "tech_review"}
_PHASES = ("developer_working", "qa_testing", "tech_review")


def agent_of(state: TeamState, unit: str) -> str:
    """Give the role that works for a unit now."""
    effect = state.doing.of(unit)
    return effect.role if isinstance(effect, RunAgent) and unit not in state.doing.holds else NOBODY


def status_of(state: TeamState, group: Group) -> str:
    """Give the group's status in the words of group_status.json."""
    works = state.doing.of(group.unit) is not None
    if group.asking and group.asking != "held":
        return "dev_blocked"
    if group.stage is Stage.DEVELOP:
        return "dev_working" if works else _FAILED.get(group.because, "dev_working")
    if group.stage is Stage.QA:
        return "qa_testing" if works else "waiting_qa"
    if group.stage is Stage.REVIEW:
        return "tech_review" if works else "waiting_review"
    return _STATUS[_stage_shown(group)]


def _stage_shown(group: Group) -> Stage:
    """Give the stage that a group's words are those of: saving what was approved belongs to its merge."""
    return Stage.MERGE if group.stage is Stage.SAVE and group.then is Stage.MERGE else group.stage


def progress_of(state: TeamState, group: Group) -> str:
    """Give the group's status in the words of pm_state.json; `assigned` is ready and waiting for a developer."""
    if group.stage is Stage.COMPLETE:
        return "complete"
    if group.stage is not Stage.PENDING:
        return "in_progress"
    return "assigned" if not group.missing and not group.serialised else "pending"


def task_status(state: TeamState, task: TeamTask) -> str:
    """Give what a person says of a task, else what follows from its group."""
    if task.by_hand is not None:
        return task.by_hand
    group = state.groups.get(task.group_id)
    if group is None or group.stage is Stage.PENDING:
        return "pending"
    return "complete" if group.stage is Stage.COMPLETE else "in_progress"


def current_phase(state: TeamState) -> str:
    """Give the phase of the team as a whole: the least advanced stage of the groups in progress."""
    if state.pm.stage is Stage.DONE:
        return "completed"
    if not state.plan.made:
        return "pm_planning" if state.spawns else "initialization"
    if state.all_complete:
        return "pm_final_check"
    found = [_PHASE.get(_stage_shown(state.groups[name]), "developer_working") for name in state.at_work]
    return min(found, key=_PHASES.index, default="developer_working")


def overlap(one: Group, other: Group) -> tuple[str, ...]:
    """List the files that both mean to change; a folder or a pattern covers what lies in it."""
    return tuple(path for path in one.files_affected if any(_meet(path, name) for name in other.files_affected))


def _meet(one: str, other: str) -> bool:
    first, second = (name.strip().removeprefix("./").rstrip("/") for name in (one, other))
    if not first or not second:
        return False
    near = first == second or first.startswith(f"{second}/") or second.startswith(f"{first}/")
    return near or fnmatchcase(first, second) or fnmatchcase(second, first)


def levels(state: TeamState) -> list[list[Group]]:
    """List groups by their depth in `depends_on`: shown as phases, and no barriers."""
    found: dict[int, list[Group]] = {}
    for group in state.groups.values():
        found.setdefault(group.level, []).append(group)
    return [found[level] for level in sorted(found)]


def together(statuses: Iterable[str]) -> str:
    """Give the status of a phase, from those of its groups."""
    known = set(statuses)
    if known <= {"complete"}:
        return "complete"
    return "pending" if known <= {"pending", "assigned"} else "in_progress"


def waiting_for(state: TeamState, unit: str) -> str:
    """Say why a unit that could go on does not, for people; '' when it works or is done."""
    hold = state.doing.holds.get(unit)
    if hold is not None:
        return hold.told
    if unit == PM or state.doing.of(unit) is not None:
        return ""
    group = state.groups[unit]
    if group.stage is Stage.PENDING and group.missing:
        return f"waits for {', '.join(sorted(group.missing))}"
    if group.stage is Stage.HELD:
        return f"waits until {', '.join(sorted(group.held_for))} has landed"
    if group.stage is Stage.MERGE:
        return "waits in line to be merged"
    return "waits for a developer" if group.stage in (Stage.PENDING, Stage.DEVELOP) else ""


class UnitStatus(StrEnum):
    """The words of group_status.json, and those for the project manager."""

    PENDING = "pending"
    DEV_WORKING = "dev_working"
    DEV_BLOCKED = "dev_blocked"
    WAITING_QA = "waiting_qa"
    QA_TESTING = "qa_testing"
    QA_FAILED = "qa_failed"
    WAITING_REVIEW = "waiting_review"
    TECH_REVIEW = "tech_review"
    CHANGES_REQUESTED = "changes_requested"
    COMPLETE = "complete"
    PLANNING = "planning"
    WATCHING = "watching"
    FINAL_CHECK = "final_check"
    DONE = "done"


_PM_STATUS = {
    Stage.PLAN: UnitStatus.PLANNING,
    Stage.WATCH: UnitStatus.WATCHING,
    Stage.DONE: UnitStatus.DONE,
}


class ShownTeam(TeamState):
    """A team that can be shown."""

    @property
    def steps(self) -> dict[str, Any]:
        """The project manager and the groups."""
        return {name: self._view(name) for name in (PM, *self.groups)}

    @property
    def specs(self) -> dict[str, Any]:
        """The needs of each of them."""
        return {PM: UnitNeeds(), **{name: UnitNeeds(group.depends_on) for name, group in self.groups.items()}}

    def _view(self, name: str) -> UnitView:
        unit = self.unit(name)
        attempt = unit.turn.attempt if unit.turn is not None else 1
        why = unit.question or unit.error or waiting_for(self, name) or None
        if not isinstance(unit, Group):
            status = _PM_STATUS.get(unit.stage, UnitStatus.FINAL_CHECK)
            return UnitView(status, attempt, self.plans + self.finals, iso(self.started_us), _iso(self.ended_us), why)
        status = UnitStatus(status_of(self, unit))
        return UnitView(status, attempt, unit.developer, _iso(unit.started_us), _iso(unit.ended_us), why)


def _iso(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)
