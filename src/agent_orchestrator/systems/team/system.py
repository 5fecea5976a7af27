"""The team system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.team.advance import advance
from agent_orchestrator.systems.team.decide import decide
from agent_orchestrator.systems.team.decide.people import check_document
from agent_orchestrator.systems.team.documents import details, documents, files, summary
from agent_orchestrator.systems.team.events import TeamBegan, TeamEvent
from agent_orchestrator.systems.team.evolve import evolve
from agent_orchestrator.systems.team.roles import FORMS
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.status import ShownTeam


def _begin(spec: TeamSpec, context: Context) -> Sequence[TeamEvent]:
    return [TeamBegan(requirements=len(spec.wanted))]


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
    files=files,
    summary=summary,
    details=details,
    faults=check_document,
)
