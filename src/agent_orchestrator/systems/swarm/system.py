"""The swarm system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.swarm.advance import advance
from agent_orchestrator.systems.swarm.decide import decide
from agent_orchestrator.systems.swarm.documents import details, documents, files, summary
from agent_orchestrator.systems.swarm.effects import FORMS
from agent_orchestrator.systems.swarm.events import SwarmBegan, SwarmEvent
from agent_orchestrator.systems.swarm.evolve import evolve
from agent_orchestrator.systems.swarm.faults import record_faults
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import SwarmState


def _begin(spec: SwarmSpec, context: Context) -> Sequence[SwarmEvent]:
    return [SwarmBegan(beads=len(spec.beads), max_agents=spec.max_agents)]


SWARM = System(
    name="swarm",
    spec_type=SwarmSpec,
    event_type=SwarmEvent,
    forms=FORMS,
    fresh=SwarmState,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    files=files,
    summary=summary,
    details=details,
    faults=record_faults,
)
