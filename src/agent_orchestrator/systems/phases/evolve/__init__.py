"""Applies one fact to the state. Never judges; touches only what the event names."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.events import CameLate, TakenUp
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.phases.evolve.launches import LAUNCH_FACTS
from agent_orchestrator.systems.phases.evolve.runs import RUN_FACTS
from agent_orchestrator.systems.phases.evolve.tasks import TASK_FACTS
from agent_orchestrator.systems.phases.state import PhasesState


def evolve(state: PhasesState, event: Any, at_us: int) -> None:
    """Apply the event, which happened at `at_us`."""
    if isinstance(event, CameLate):
        return
    _accrue(state, event, at_us)
    apply_event(_FACTS, state, event, at_us)
    state.ticking_us = at_us if state.doing.at_work else None


def _accrue(state: PhasesState, event: Any, at_us: int) -> None:
    """Count the time since the last fact, as far as something was at work in it."""
    rebooted = isinstance(event, TakenUp) and state.boot not in ("", event.boot)
    if isinstance(event, TakenUp):
        state.boot = event.boot
    if state.ticking_us is None or rebooted:
        return
    until_us = at_us
    ended_us = getattr(event, "ended_us", None)
    if ended_us is not None and state.doing.at_work == 1:
        # What ended while nobody looked was not at work until now; of what was lost nobody knows.
        lost = event.failure is not None and event.failure.kind is FailureKind.LOST
        until_us = state.ticking_us if lost else min(at_us, ended_us)
    state.elapsed_us += max(0, until_us - state.ticking_us)


_FACTS: Facts = LAUNCH_FACTS | TASK_FACTS | RUN_FACTS
"""RunPlanned and EditRefused change nothing but the time of the last fact."""
