"""The loop system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.loop.advance import advance
from agent_orchestrator.systems.loop.decide import decide
from agent_orchestrator.systems.loop.decide.edits import check_state_document
from agent_orchestrator.systems.loop.documents import details, documents, files, summary
from agent_orchestrator.systems.loop.effects import FORMS
from agent_orchestrator.systems.loop.events import LoopBegan, LoopEvent
from agent_orchestrator.systems.loop.evolve import evolve
from agent_orchestrator.systems.loop.registry import overview
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import LoopState


def _begin(spec: LoopSpec, context: Context) -> Sequence[LoopEvent]:
    return [LoopBegan(task=spec.task, iteration=spec.carried.iteration if spec.carried is not None else 0)]


LOOP = System(
    name="loop",
    spec_type=LoopSpec,
    event_type=LoopEvent,
    forms=FORMS,
    fresh=LoopState,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    files=files,
    summary=summary,
    details=details,
    faults=lambda path, document: check_state_document(document) if path.endswith("/state.json") else [],
    overview=overview,
)
