"""Applies one fact to the state. Never judges; touches only the beads that the event names."""

from __future__ import annotations

from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.swarm.events import SwarmEvent
from agent_orchestrator.systems.swarm.evolve.attempts import ATTEMPT_FACTS
from agent_orchestrator.systems.swarm.evolve.merges import MERGE_FACTS
from agent_orchestrator.systems.swarm.evolve.runs import RUN_FACTS
from agent_orchestrator.systems.swarm.state import SwarmState


def evolve(state: SwarmState, event: SwarmEvent, at_us: int) -> None:
    """Applies the event, which happened at `at_us`."""
    apply_event(_FACTS, state, event, at_us)


_FACTS: Facts = ATTEMPT_FACTS | MERGE_FACTS | RUN_FACTS
"""SwarmBegan and EditRefused change nothing but the time of the last fact."""
