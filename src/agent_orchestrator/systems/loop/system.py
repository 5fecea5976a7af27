"""The loop system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.system import Context, Overview, System
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


class LoopSystem:
    """The loop system as the engine sees it."""

    name = "loop"
    spec_type: type[Any] = LoopSpec
    event_type: Any = LoopEvent
    forms = FORMS

    def fresh(self, spec: LoopSpec, context: Context) -> LoopState:
        """Nothing has happened."""
        return LoopState(spec, context)

    def begin(self, spec: LoopSpec, context: Context) -> Sequence[LoopEvent]:
        """The loop exists."""
        return [LoopBegan(task=spec.task, iteration=spec.carried.iteration if spec.carried is not None else 0)]

    decide = staticmethod(decide)
    advance = staticmethod(advance)
    evolve = staticmethod(evolve)
    documents = staticmethod(documents)
    files = staticmethod(files)
    summary = staticmethod(summary)
    details = staticmethod(details)
    overview = staticmethod(overview)

    def faults(self, path: str, document: Any) -> list[str]:
        """What is wrong with an edited state.json; the other files are derived and simply written again."""
        return check_state_document(document) if path.endswith("/state.json") else []


LOOP = LoopSystem()

_: tuple[System, Overview] = (LOOP, LOOP)
