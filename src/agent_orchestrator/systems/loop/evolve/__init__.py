"""Applies one fact to the state. Never judges; touches only what the event names."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.loop.evolve.loops import LOOP_FACTS
from agent_orchestrator.systems.loop.evolve.work import WORK_FACTS
from agent_orchestrator.systems.loop.state import LoopState


def evolve(state: LoopState, event: Any, at_us: int) -> None:
    """Applies the event, which happened at `at_us`."""
    apply_event(_FACTS, state, event, at_us)


_FACTS: Facts = WORK_FACTS | LOOP_FACTS
"""LoopBegan and EditRefused change nothing but the time of the last fact."""
