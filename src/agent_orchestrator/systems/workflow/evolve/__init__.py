"""Applies one fact to the state. Never judges; touches only what the event names (a loop-back: what lies below its target)."""

from __future__ import annotations

from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.workflow.events import WorkflowEvent
from agent_orchestrator.systems.workflow.evolve.runs import RUN_FACTS
from agent_orchestrator.systems.workflow.evolve.steps import STEP_FACTS
from agent_orchestrator.systems.workflow.state import WorkflowState


def evolve(state: WorkflowState, event: WorkflowEvent, at_us: int) -> None:
    """Applies the event, which happened at `at_us`."""
    apply_event(_FACTS, state, event, at_us)


_FACTS: Facts = STEP_FACTS | RUN_FACTS
"""RunBegan and EditRefused change nothing but the time of the last fact."""
