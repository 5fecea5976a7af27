"""Applies one fact to the state. Never judges; touches only what the event names."""

from __future__ import annotations

from functools import partial

from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.loop.evolve.loops import LOOP_FACTS
from agent_orchestrator.systems.loop.evolve.work import WORK_FACTS

_FACTS: Facts = WORK_FACTS | LOOP_FACTS
"""LoopBegan and EditRefused change nothing but the time of the last fact."""

evolve = partial(apply_event, _FACTS)
"""Applies an event to the state: state, event, the time when it happened."""
