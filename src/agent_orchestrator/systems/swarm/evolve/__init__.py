"""Applies one fact to the state. Never judges; touches only the beads that the event names."""

from __future__ import annotations

from agent_orchestrator.systems.swarm.events import SwarmEvent
from agent_orchestrator.systems.swarm.evolve.attempts import ATTEMPT_FACTS
from agent_orchestrator.systems.swarm.evolve.merges import MERGE_FACTS
from agent_orchestrator.systems.swarm.evolve.runs import RUN_FACTS
from agent_orchestrator.systems.swarm.state import SwarmState


def evolve(state: SwarmState, event: SwarmEvent, at_us: int) -> None:
    """Applies the event, which happened at `at_us`."""
    state.updated_us = at_us
    apply = _APPLY.get(type(event))
    if apply is not None:
        apply(state, event, at_us)
    else:
        # All that is not ours is common; a common event that concerns no lifecycle is ignored there.
        state.lifecycle.evolve(event)  # type: ignore[arg-type]


_APPLY = ATTEMPT_FACTS | MERGE_FACTS | RUN_FACTS
"""SwarmBegan and EditRefused change nothing but the time of the last fact."""
