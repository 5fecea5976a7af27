"""The phases system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.phases.advance import advance
from agent_orchestrator.systems.phases.decide import decide
from agent_orchestrator.systems.phases.decide.edits import read_state_document
from agent_orchestrator.systems.phases.documents import STATE_FILE, details, documents, files, summary
from agent_orchestrator.systems.phases.events import PhasesEvent, RunPlanned
from agent_orchestrator.systems.phases.evolve import evolve
from agent_orchestrator.systems.phases.reports import FORMS
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState


def _begin(spec: PhasesSpec, context: Context) -> Sequence[PhasesEvent]:
    return [RunPlanned(name=spec.plan.name, phases=len(spec.plan.phases), tasks=len(spec.plan.tasks))]


def _faults(path: str, document: Any) -> list[str]:
    """List what is wrong with an edited state file; the other files are derived and simply written again."""
    if not path.endswith(f"/{STATE_FILE}"):
        return []
    read = read_state_document(document)
    return read if isinstance(read, list) else []


PHASES = System(
    name="phases",
    spec_type=PhasesSpec,
    event_type=PhasesEvent,
    forms=FORMS,
    fresh=PhasesState,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    files=files,
    summary=summary,
    details=details,
    faults=_faults,
)
