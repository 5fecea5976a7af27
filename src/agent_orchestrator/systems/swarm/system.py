"""The swarm system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.swarm.advance import advance
from agent_orchestrator.systems.swarm.checking import record_faults
from agent_orchestrator.systems.swarm.decide import decide
from agent_orchestrator.systems.swarm.documents import details, documents, files, summary
from agent_orchestrator.systems.swarm.effects import FORMS
from agent_orchestrator.systems.swarm.events import SwarmBegan, SwarmEvent
from agent_orchestrator.systems.swarm.evolve import evolve
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import SwarmState


class SwarmSystem:
    """The swarm system as the engine sees it."""

    name = "swarm"
    spec_type: type[Any] = SwarmSpec
    event_type: Any = SwarmEvent
    forms = FORMS

    def fresh(self, spec: SwarmSpec, context: Context) -> SwarmState:
        """No bead is dispatched."""
        return SwarmState(spec, context)

    def begin(self, spec: SwarmSpec, context: Context) -> Sequence[SwarmEvent]:
        """The run exists."""
        return [SwarmBegan(beads=len(spec.beads), max_agents=spec.max_agents)]

    decide = staticmethod(decide)
    advance = staticmethod(advance)
    evolve = staticmethod(evolve)
    documents = staticmethod(documents)
    files = staticmethod(files)
    summary = staticmethod(summary)
    details = staticmethod(details)

    def faults(self, path: str, document: Any) -> list[str]:
        """What is wrong with a record, by its published schema."""
        return record_faults(path, document)


SWARM = SwarmSystem()

_: System = SWARM
