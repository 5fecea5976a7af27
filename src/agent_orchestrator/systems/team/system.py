"""The team system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.team.advance import advance
from agent_orchestrator.systems.team.decide import decide
from agent_orchestrator.systems.team.decide.people import check_document
from agent_orchestrator.systems.team.documents import details, documents, files, summary
from agent_orchestrator.systems.team.events import (
    AgentStarted,
    GroupCompleted,
    PlanMade,
    QaReported,
    Reviewed,
    TeamBegan,
    TeamEvent,
    WorkSaved,
)
from agent_orchestrator.systems.team.evolve import evolve
from agent_orchestrator.systems.team.roles import FORMS
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.status import ShownTeam


def _begin(spec: TeamSpec, context: Context) -> Sequence[TeamEvent]:
    return [TeamBegan(requirements=len(spec.wanted))]


def _points(event: TeamEvent) -> tuple[str, ...]:
    """Name a plan, a group's work that was saved, and a group that is done: merged."""
    match event:
        case PlanMade():
            return ("plan",)
        case WorkSaved():
            return (f"work-{event.group}",)
        case GroupCompleted():
            return (event.group,)
        case _:
            return ()


MOMENTS: dict[type[Event], bool] = {
    AgentStarted: False,
    **dict.fromkeys((PlanMade, WorkSaved, QaReported, Reviewed, GroupCompleted), True),
}
"""The hand-overs that the files of seed 002 have words for: a reader finds `waiting_qa` before `qa_testing`."""

TEAM = System(
    name="team",
    spec_type=TeamSpec,
    event_type=TeamEvent,
    forms=FORMS,
    fresh=ShownTeam,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    moments=MOMENTS,
    files=files,
    summary=summary,
    details=details,
    faults=check_document,
    points=_points,
)
