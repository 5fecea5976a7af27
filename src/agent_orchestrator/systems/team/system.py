"""The team system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.team.advance import advance
from agent_orchestrator.systems.team.decide import decide
from agent_orchestrator.systems.team.decide.edits import check_document
from agent_orchestrator.systems.team.documents import details, documents, files, summary
from agent_orchestrator.systems.team.events import TeamBegan, TeamEvent
from agent_orchestrator.systems.team.evolve import evolve
from agent_orchestrator.systems.team.reports import FORMS
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.state import TeamState
from agent_orchestrator.systems.team.views import ShownTeam


class TeamSystem:
    """The team system as the engine sees it."""

    name = "team"
    spec_type: type[Any] = TeamSpec
    event_type: Any = TeamEvent
    forms = FORMS

    def fresh(self, spec: TeamSpec, context: Context) -> TeamState:
        """Nothing has happened."""
        return ShownTeam(spec, context)

    def begin(self, spec: TeamSpec, context: Context) -> Sequence[TeamEvent]:
        """The team exists."""
        return [TeamBegan(requirements=len(spec.wanted))]

    decide = staticmethod(decide)
    advance = staticmethod(advance)
    evolve = staticmethod(evolve)
    documents = staticmethod(documents)
    files = staticmethod(files)
    summary = staticmethod(summary)
    details = staticmethod(details)

    def faults(self, path: str, document: Any) -> list[str]:
        """What is wrong with an edited file."""
        return check_document(path, document)


TEAM = TeamSystem()

_: System = TEAM
