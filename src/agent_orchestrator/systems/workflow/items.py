"""The items of a step's loop: where they come from, and how many may be."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.workflow.events import ItemsAsked, ItemsListed, StepCompleted, StepFailed, WorkflowEvent
from agent_orchestrator.systems.workflow.nodes import Reader, compose
from agent_orchestrator.systems.workflow.state import WorkflowState


def list_items(state: WorkflowState, unit: str) -> list[WorkflowEvent]:
    """Finds the items of a step that is about to start; a file must be read first."""
    loop = state.specs[unit].loop
    assert loop is not None, f"{unit} has no loop"
    if loop.items_from_artifact is not None:
        return [ItemsAsked(step=unit, effect=state.name_effect(unit, "items"))]
    if loop.items_from_step is not None:
        return check_items(state, unit, _items_of(state, loop.items_from_step))
    return check_items(state, unit, list(loop.items or ()))


def check_items(state: WorkflowState, unit: str, items: list[Any] | None) -> list[WorkflowEvent]:
    """The items are known: none completes the step, too many or no list at all fails it."""
    loop = state.specs[unit].loop
    assert loop is not None, f"{unit} has no loop"
    if items is None:
        return [StepFailed(step=unit, error=f"{loop.items_from_artifact} does not hold a list of items", cause="spec")]
    if len(items) > loop.max_iterations:
        error = f"the loop has {len(items)} items, more than its max_iterations {loop.max_iterations}"
        return [StepFailed(step=unit, error=error, cause="spec")]
    fact = ItemsListed(step=unit, items=tuple(items))
    return [fact] if items else [fact, StepCompleted(step=unit)]


def items_in_text(text: str) -> list[Any] | None:
    """A JSON list, a YAML list, or else the lines that are not empty; None for JSON that is no list."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = _yaml_list(text)
    else:
        if isinstance(document, dict):
            return None
    if isinstance(document, list):
        return document
    return [line.strip() for line in text.splitlines() if line.strip()]


def _yaml_list(text: str) -> Any:
    try:
        root = compose(text, "items")
    except InvalidSpec:
        return None
    reader = Reader()
    value = reader.value(root, "items") if root is not None else None
    return None if reader.problems else value


def _items_of(state: WorkflowState, source: str) -> list[Any]:
    step = state.steps[source]
    metric = step.metrics.get("items")
    if metric is not None:
        try:
            items = msgspec.json.decode(metric)
        except (msgspec.DecodeError, RecursionError):
            items = None
        if isinstance(items, list):
            return items
    return list(step.artifacts)
