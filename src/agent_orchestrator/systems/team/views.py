"""A team as commands for all systems show runs: units as steps, each with a status, counts, times and a reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from agent_orchestrator.core.unit import UnitNeeds, UnitView
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.team.state import PM, Group, Stage, TeamState
from agent_orchestrator.systems.team.status import status_of, waiting_for


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
        """What each of them needs."""
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
