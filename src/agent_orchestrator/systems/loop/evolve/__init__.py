"""Applies one fact to the state. Never judges; touches only what the event names."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.systems.loop.evolve.loops import LOOP_FACTS
from agent_orchestrator.systems.loop.evolve.work import WORK_FACTS
from agent_orchestrator.systems.loop.state import LoopState


def evolve(state: LoopState, event: Any, at_us: int) -> None:
    """Applies the event, which happened at `at_us`."""
    state.updated_us = at_us
    apply = _APPLY.get(type(event))
    if apply is not None:
        apply(state, event, at_us)
    else:
        # All that is not ours is common; a common event that concerns no lifecycle is ignored there.
        state.lifecycle.evolve(event)


_APPLY = WORK_FACTS | LOOP_FACTS
"""LoopBegan and EditRefused change nothing but the time of the last fact."""
