"""The loop system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.loop.advance import advance
from agent_orchestrator.systems.loop.decide import decide
from agent_orchestrator.systems.loop.decide.edits import check_state_document
from agent_orchestrator.systems.loop.documents import details, documents, files, summary
from agent_orchestrator.systems.loop.effects import FORMS
from agent_orchestrator.systems.loop.events import (
    CompletionBegan,
    IterationFinished,
    IterationStarted,
    LoopBegan,
    LoopEvent,
)
from agent_orchestrator.systems.loop.evolve import evolve
from agent_orchestrator.systems.loop.registry import overview
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import LoopState


def _begin(spec: LoopSpec, context: Context) -> Sequence[LoopEvent]:
    return [LoopBegan(task=spec.task, iteration=spec.carried.iteration if spec.carried is not None else 0)]


def _points(event: LoopEvent) -> tuple[str, ...]:
    """Name an iteration that is over."""
    return (f"iteration-{event.iteration}",) if isinstance(event, IterationFinished) else ()


MOMENTS: dict[type[Event], bool] = {IterationStarted: False, IterationFinished: False, CompletionBegan: True}
"""The updates of seed 003: each iteration, each check of the criterion, and the change of the status."""

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
    moments=MOMENTS,
    files=files,
    summary=summary,
    details=details,
    faults=lambda path, document: check_state_document(document) if path.endswith("/state.json") else [],
    points=_points,
    overview=overview,
)
