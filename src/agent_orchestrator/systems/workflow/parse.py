"""Reads a workflow file: strict, and with every fault at once, each with its line and column.

Pure: prompts are not looked for and agents not checked here. Called by `orc run` and `orc validate`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

import msgspec
import yaml

from agent_orchestrator.core.budget import Amounts
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.units import read_count, read_duration_s, read_money
from agent_orchestrator.errors import InvalidSpec, OrcError
from agent_orchestrator.systems.workflow.graph import graph_faults
from agent_orchestrator.systems.workflow.nodes import Reader, compose, is_null
from agent_orchestrator.systems.workflow.spec import ItemLoop, StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.when import WhenError, operands, parse_when

WORKFLOW_KEYS = ("name", "description", "metadata", "steps")
STEP_KEYS = (
    *("id", "agent", "prompt", "needs", "loop_back_to", "gates", "check", "human_in_the_loop", "when", "model", "timeout"),
    *("answer_file", "max_attempts", "metadata", "next_on_success", "loop"),
    *("budget_usd", "budget_tokens", "budget_time", "attempt_budget_usd", "attempt_budget_tokens"),
)
LOOP_KEYS = ("items", "items_from_step", "items_from_artifact", "item_var", "index_var", "max_iterations")
_SOURCES = ("items", "items_from_step", "items_from_artifact")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class ParsedWorkflow(msgspec.Struct, frozen=True):
    """A valid workflow file; the run's options still have their defaults."""

    spec: WorkflowSpec
    warnings: tuple[str, ...] = ()


class _Draft(msgspec.Struct):
    """A step as read, with the nodes that later complaints point at."""

    spec: StepSpec
    nodes: dict[str, yaml.Node]
    needs: list[tuple[str, yaml.Node]]


def parse(text: str, file: str) -> ParsedWorkflow:
    """The workflow in `text`; InvalidSpec carries every problem found in it."""
    root = compose(text, file)
    reader = Reader()
    if root is None or is_null(root):
        reader.complain("the file is empty; a workflow needs `steps`", root)
        raise InvalidSpec(file, reader.problems)
    keys = reader.mapping(root, "the workflow", WORKFLOW_KEYS)
    name = reader.text(keys["name"], "name") if "name" in keys else posixpath.splitext(posixpath.basename(file))[0]
    description = _optional_text(reader, keys, "description", "description") or ""
    metadata = _metadata(reader, keys, "metadata")
    drafts = _read_steps(reader, root, keys.get("steps"))
    warnings = _check_graph(reader, drafts, file) if drafts else []
    if reader.problems:
        raise InvalidSpec(file, sorted(reader.problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
    steps = tuple(draft.spec for draft in drafts.values())
    return ParsedWorkflow(
        WorkflowSpec(name=name or "workflow", description=description, metadata=metadata, steps=steps), tuple(warnings)
    )


def env_names(spec: WorkflowSpec) -> list[str]:
    """The environment variables that `when` conditions ask for: to be captured in `when_env`."""
    names: dict[str, None] = {}
    for step in spec.steps:
        if step.when is not None:
            names.update((side.name or "", None) for side in operands(parse_when(step.when)) if side.kind == "env")
    return list(names)


def _read_steps(reader: Reader, root: yaml.Node, node: yaml.Node | None) -> dict[str, _Draft]:
    entries = reader.sequence(node, "steps") if node is not None and not is_null(node) else []
    if not entries and not reader.problems:
        reader.complain("a workflow needs at least one entry in `steps`", node or root)
    drafts: dict[str, _Draft] = {}
    first_lines: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        draft = _read_step(reader, entry, number)
        if draft is None:
            continue
        unit = draft.spec.id
        if unit in drafts:
            reader.complain(f"step {unit!r}: this id is used already in line {first_lines[unit]}", draft.nodes["id"])
            continue
        first_lines[unit] = draft.nodes["id"].start_mark.line + 1
        drafts[unit] = draft
    return drafts


def _read_step(reader: Reader, node: yaml.Node, number: int) -> _Draft | None:
    place = f"step number {number}"
    keys = reader.mapping(node, place, STEP_KEYS)
    if not isinstance(node, yaml.MappingNode):
        return None
    unit = reader.text(keys["id"], f"{place}: id") if "id" in keys else None
    if unit is not None:
        try:
            checked_id(unit, "step id")
            place = f"step {unit!r}"
        except OrcError as error:
            reader.complain(str(error), keys["id"])
            unit = None
    for key in ("id", "agent", "prompt"):
        if key not in keys:
            reader.complain(f"{place}: the key {key!r} is missing", node)
    agent = reader.text(keys["agent"], f"{place}: agent") if "agent" in keys else None
    prompt = reader.text(keys["prompt"], f"{place}: prompt") if "prompt" in keys else None
    needs = reader.texts(keys["needs"], f"{place}: needs") if "needs" in keys else []
    human, file, timeout, attempts, loop = (
        None if (given := keys.get(key)) is None or is_null(given) else given
        for key in ("human_in_the_loop", "answer_file", "timeout", "max_attempts", "loop")
    )
    spec = StepSpec(
        id=unit or "",
        agent=agent or "",
        prompt=prompt or "",
        needs=tuple(dict.fromkeys(need for need, _ in needs)),
        loop_back_to=_optional_text(reader, keys, "loop_back_to", f"{place}: loop_back_to"),
        gates=_names(reader, keys, "gates", place),
        check=_optional_text(reader, keys, "check", f"{place}: check"),
        human_in_the_loop=human is not None and reader.boolean(human, f"{place}: human_in_the_loop"),
        answer_file=file is None or reader.boolean(file, f"{place}: answer_file"),
        when=_optional_text(reader, keys, "when", f"{place}: when"),
        model=_optional_text(reader, keys, "model", f"{place}: model"),
        timeout_s=reader.checked(timeout, f"{place}: timeout", read_duration_s) if timeout else None,
        max_attempts=reader.checked(attempts, f"{place}: max_attempts", read_count) if attempts else None,
        budget=_amounts(reader, keys, "budget", place),
        attempt_budget=_amounts(reader, keys, "attempt_budget", place),
        metadata=_metadata(reader, keys, f"{place}: metadata"),
        next_on_success=_names(reader, keys, "next_on_success", place),
        loop=_read_loop(reader, loop, f"{place}: loop") if loop else None,
    )
    return _Draft(spec, keys, needs) if unit else None


def _read_loop(reader: Reader, node: yaml.Node, place: str) -> ItemLoop | None:
    keys = reader.mapping(node, place, LOOP_KEYS)
    given = [key for key in _SOURCES if key in keys]
    if len(given) != 1 and isinstance(node, yaml.MappingNode):
        said = " and ".join(given) or "none"
        reader.complain(f"{place}: exactly one of {', '.join(_SOURCES)} must be given, not {said}", node)
    items = None
    if "items" in keys:
        items = tuple(reader.value(entry, f"{place}: items") for entry in reader.sequence(keys["items"], f"{place}: items"))
    names = {}
    for key, default in (("item_var", "item"), ("index_var", "index")):
        names[key] = (reader.text(keys[key], f"{place}: {key}") if key in keys else None) or default
        if not _VARIABLE.match(names[key]):
            reader.complain(f"{place}: {key} is {names[key]!r}: use letters, digits and '_'", keys[key])
    if names["item_var"].upper() == names["index_var"].upper():
        reader.complain(f"{place}: item_var and index_var are the same", node)
    most = reader.checked(keys["max_iterations"], f"{place}: max_iterations", read_count) if "max_iterations" in keys else None
    return ItemLoop(
        items=items,
        items_from_step=_optional_text(reader, keys, "items_from_step", f"{place}: items_from_step"),
        items_from_artifact=_optional_text(reader, keys, "items_from_artifact", f"{place}: items_from_artifact"),
        item_var=names["item_var"],
        index_var=names["index_var"],
        max_iterations=most,
    )


def _check_graph(reader: Reader, drafts: dict[str, _Draft], file: str) -> list[str]:
    """Check what can only be seen with all steps at hand; return the warnings."""
    for unit, draft in drafts.items():
        if draft.spec.when is not None:
            _check_when(reader, unit, draft.spec.when, draft.nodes["when"])
    for fault in graph_faults([draft.spec for draft in drafts.values()]):
        draft = drafts[fault.step]
        named = next((node for need, node in draft.needs if need == fault.other), None) if fault.key == "needs" else None
        reader.complain(fault.message, named or draft.nodes[fault.key])
    return _check_next(drafts, file)


def _check_when(reader: Reader, unit: str, text: str, node: yaml.Node) -> None:
    try:
        parse_when(text)
    except WhenError as error:
        reader.complain(f"step {unit!r}: when, character {error.column}: {error}", node)


def _check_next(drafts: Mapping[str, _Draft], file: str) -> list[str]:
    """`next_on_success` has no effect; where it disagrees with `needs`, somebody believes otherwise."""
    warnings = []
    for unit, draft in drafts.items():
        for after in draft.spec.next_on_success:
            if after not in drafts or unit not in drafts[after].spec.needs:
                line = draft.nodes["next_on_success"].start_mark.line + 1
                said = "which does not need it" if after in drafts else "and there is no such step"
                warnings.append(f"{file}:{line}: step {unit!r}: next_on_success names {after!r}, {said}; only `needs` counts")
    return warnings


def _amounts(reader: Reader, keys: Mapping[str, yaml.Node], name: str, place: str) -> Amounts | None:
    """Read the budget of a step: `budget_usd` and its like."""
    money, count, time = (keys.get(f"{name}_{unit}") for unit in ("usd", "tokens", "time"))
    if money is None and count is None and time is None:
        return None
    return Amounts(
        cost_usd=reader.checked(money, f"{place}: {name}_usd", read_money) if money is not None else None,
        tokens=reader.checked(count, f"{place}: {name}_tokens", read_count) if count is not None else None,
        wall_s=reader.checked(time, f"{place}: {name}_time", read_duration_s) if time is not None else None,
    )


def _optional_text(reader: Reader, keys: Mapping[str, yaml.Node], key: str, what: str) -> str | None:
    node = keys.get(key)
    return reader.text(node, what) if node is not None and not is_null(node) else None


def _names(reader: Reader, keys: Mapping[str, yaml.Node], key: str, place: str) -> tuple[str, ...]:
    return tuple(text for text, _ in reader.texts(keys[key], f"{place}: {key}")) if key in keys else ()


def _metadata(reader: Reader, keys: Mapping[str, yaml.Node], what: str) -> dict[str, object]:
    node = keys.get("metadata")
    if node is None or is_null(node):
        return {}
    if not isinstance(node, yaml.MappingNode):
        reader.complain(f"{what} must be a mapping", node)
        return {}
    read: dict[str, object] = reader.value(node, what)
    return read
