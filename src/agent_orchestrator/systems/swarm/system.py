"""The swarm system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.swarm.advance import advance
from agent_orchestrator.systems.swarm.decide import decide
from agent_orchestrator.systems.swarm.documents import details, documents, files, summary
from agent_orchestrator.systems.swarm.effects import FORMS
from agent_orchestrator.systems.swarm.events import (
    AttemptEnded,
    AttemptStarted,
    MergeFinished,
    SwarmBegan,
    SwarmEvent,
)
from agent_orchestrator.systems.swarm.evolve import evolve
from agent_orchestrator.systems.swarm.faults import record_faults
from agent_orchestrator.systems.swarm.snapshot import SNAPSHOTS
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import SwarmState


def _begin(spec: SwarmSpec, context: Context) -> Sequence[SwarmEvent]:
    return [SwarmBegan(beads=len(spec.beads), max_agents=spec.max_agents)]


def _points(event: SwarmEvent) -> tuple[str, ...]:
    """Name a bead that is over, however it ended, and one that was merged."""
    if isinstance(event, AttemptEnded) and not event.will_retry:
        return (event.bead,)
    return (f"merge-{event.bead}",) if isinstance(event, MergeFinished) and event.commit is not None else ()


MOMENTS: dict[type[Event], bool] = {AttemptStarted: False, AttemptEnded: False}
"""The records of seed 004: one when an agent is dispatched, and its result."""

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
    moments=MOMENTS,
    files=files,
    summary=summary,
    details=details,
    faults=record_faults,
    points=_points,
    snapshots=SNAPSHOTS,
)
