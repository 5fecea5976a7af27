"""The phases system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.phases.advance import advance
from agent_orchestrator.systems.phases.decide import decide
from agent_orchestrator.systems.phases.decide.reading import read_state_document
from agent_orchestrator.systems.phases.documents import STATE_FILE, documents, files
from agent_orchestrator.systems.phases.events import PhasesEvent, RunPlanned
from agent_orchestrator.systems.phases.evolve import evolve
from agent_orchestrator.systems.phases.reports import FORMS
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.summary import details, summary


class PhasesSystem:
    """The phases system as the engine sees it."""

    name = "phases"
    spec_type: type[Any] = PhasesSpec
    event_type: Any = PhasesEvent
    forms = FORMS

    def fresh(self, spec: PhasesSpec, context: Context) -> PhasesState:
        """Nothing has happened."""
        return PhasesState(spec, context)

    def begin(self, spec: PhasesSpec, context: Context) -> Sequence[PhasesEvent]:
        """The run exists."""
        return [RunPlanned(name=spec.plan.name, phases=len(spec.plan.phases), tasks=len(spec.plan.tasks))]

    decide = staticmethod(decide)
    advance = staticmethod(advance)
    evolve = staticmethod(evolve)
    documents = staticmethod(documents)
    files = staticmethod(files)
    summary = staticmethod(summary)
    details = staticmethod(details)

    def faults(self, path: str, document: Any) -> list[str]:
        """What is wrong with an edited state file; the other files are derived and simply written again."""
        if not path.endswith(f"/{STATE_FILE}"):
            return []
        read = read_state_document(document)
        return read if isinstance(read, list) else []


PHASES = PhasesSystem()

_: System = PHASES
