"""Applies one fact to the state. Never judges; touches only what the event names."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.team.evolve.groups import GROUP_FACTS
from agent_orchestrator.systems.team.evolve.runs import RUN_FACTS
from agent_orchestrator.systems.team.evolve.work import WORK_FACTS
from agent_orchestrator.systems.team.state import TeamState


def evolve(state: TeamState, event: Any, at_us: int) -> None:
    """Apply the event, which happened at `at_us`."""
    state.events += 1
    apply_event(_FACTS, state, event, at_us)


_FACTS: Facts = WORK_FACTS | GROUP_FACTS | RUN_FACTS
"""TeamBegan and EditRefused change nothing but the time of the last fact."""
