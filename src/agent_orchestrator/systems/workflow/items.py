"""The items of a step's loop: where they come from, and how many may be."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.workflow.effects import read_items
from agent_orchestrator.systems.workflow.events import ItemsAsked, ItemsListed, StepCompleted, StepFailed, WorkflowEvent
from agent_orchestrator.systems.workflow.spec import ITEMS_MAX
from agent_orchestrator.systems.workflow.state import StepDocument, WorkflowState


def list_items(state: WorkflowState, unit: str) -> list[WorkflowEvent]:
    """Finds the items of a step that is about to start; a file must be read first."""
    loop = state.specs[unit].loop
    assert loop is not None, f"{unit} has no loop"
    if loop.items_from_step is not None and (reported := _reported_items(state.steps[loop.items_from_step])) is not None:
        return _take_items(state, unit, reported)
    if read_items(state, unit, EffectId("")).path:
        return [ItemsAsked(step=unit, effect=state.name_effect(unit, "items"))]
    return _take_items(state, unit, list(loop.items or ()))


def items_read(state: WorkflowState, unit: str, text: str | None, problem: str) -> list[WorkflowEvent]:
    """The file with the items was read, or could not be (None), for the reason given."""
    loop = state.specs[unit].loop
    assert loop is not None, f"{unit} has no loop"
    if loop.items_from_step is not None:
        listed = _listed_items(text) if text is not None else None
        return _take_items(state, unit, listed if listed is not None else list(state.steps[loop.items_from_step].artifacts))
    if text is None:
        return [StepFailed(step=unit, error=f"the loop's items could not be read: {problem}", cause="spec")]
    items = items_in_text(text)
    if items is None:
        return [StepFailed(step=unit, error=f"{loop.items_from_artifact} does not hold a list of items", cause="spec")]
    return _take_items(state, unit, items)


def _take_items(state: WorkflowState, unit: str, items: list[Any]) -> list[WorkflowEvent]:
    """The items are known: none completes the step, and those beyond `max_iterations` are left out, and said."""
    loop = state.specs[unit].loop
    assert loop is not None, f"{unit} has no loop"
    if loop.max_iterations is None and len(items) > ITEMS_MAX:
        error = f"the loop has {len(items)} items, more than {ITEMS_MAX}; its max_iterations must say how many to take"
        return [StepFailed(step=unit, error=error, cause="spec")]
    taken = tuple(items[: loop.max_iterations])
    fact = ItemsListed(step=unit, items=taken, left_out=len(items) - len(taken))
    return [fact] if taken else [fact, StepCompleted(step=unit)]


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
    from agent_orchestrator.systems.workflow.nodes import Reader, compose

    try:
        root = compose(text, "items")
    except InvalidSpec:
        return None
    reader = Reader()
    value = reader.value(root, "items") if root is not None else None
    return None if reader.problems else value


def _reported_items(step: StepDocument) -> list[Any] | None:
    """Return the list in the step's metric `items`, if it reported one."""
    metric = step.metrics.get("items")
    items = _decoded(metric) if metric is not None else None
    return items if isinstance(items, list) else None


def _listed_items(text: str) -> list[Any] | None:
    """Return the items of an artifact that is JSON: a list, or the list `items` of an object."""
    document = _decoded(text)
    items = document.get("items") if isinstance(document, dict) else document
    return items if isinstance(items, list) else None


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
