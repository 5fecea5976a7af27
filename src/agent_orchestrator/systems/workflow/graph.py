"""The graph of a workflow's steps: what is wrong between them, and who is above whom. It knows no file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agent_orchestrator.core.ids import as_variable
from agent_orchestrator.systems.workflow.spec import StepSpec
from agent_orchestrator.systems.workflow.when import WhenError, operands, parse_when


class GraphFault(NamedTuple):
    """Something wrong between steps: whose it is, the key and the step that it names, and the sentence."""

    step: str
    key: str
    other: str
    message: str


def graph_faults(steps: Sequence[StepSpec]) -> Iterator[GraphFault]:
    """Find what is wrong between steps: needs that are missing or go in a circle, references to steps that are not above."""
    known = {step.id for step in steps}
    needs = {step.id: [need for need in step.needs if need in known and need != step.id] for step in steps}
    for step in steps:
        for need in step.needs:
            if need == step.id:
                yield GraphFault(step.id, "needs", need, f"step {step.id!r} needs itself")
            elif need not in known:
                yield GraphFault(step.id, "needs", need, f"step {step.id!r} needs {need!r}, and there is no such step")
        yield from _variable_faults(step)
    if cycle := find_cycle(needs):
        yield GraphFault(cycle[0], "needs", "", f"these steps need each other in a circle: {' → '.join(cycle)}")
    for step in steps:
        for key, other in _references(step):
            place = "loop" if key == "items_from_step" else key
            if other not in needs:
                yield GraphFault(step.id, place, other, f"step {step.id!r}: {key} names {other!r}, and there is no such step")
            elif not is_above(needs, step.id, other):
                said = f"step {step.id!r}: {key} names {other!r}, which is not above it (reached through `needs`)"
                yield GraphFault(step.id, place, other, said)


def _variable_faults(step: StepSpec) -> Iterator[GraphFault]:
    """Find needs whose artifacts a step would be told under the same name: one would hide the other."""
    told: dict[str, str] = {}
    for need in step.needs:
        other = told.setdefault(name := as_variable(need), need)
        if other != need:
            said = f"step {step.id!r} needs {other!r} and {need!r}, and the artifacts of both would be DEP_{name}_ARTIFACTS"
            yield GraphFault(step.id, "needs", need, f"{said}; give one of them another id")


def _references(step: StepSpec) -> Iterator[tuple[str, str]]:
    """The steps that a step names besides those that it needs, and where it does so."""
    if step.loop_back_to is not None:
        yield "loop_back_to", step.loop_back_to
    if step.loop is not None and step.loop.items_from_step is not None:
        yield "items_from_step", step.loop.items_from_step
    for other in _asked(step.when) if step.when is not None else ():
        yield "when", other


def _asked(text: str) -> list[str]:
    """The steps that a condition asks about; none when it is none."""
    try:
        condition = parse_when(text)
    except WhenError:
        return []  # Complained about where it is read.
    return list(dict.fromkeys(side.name or "" for side in operands(condition) if side.kind in {"status", "metric"}))


def find_cycle(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """The first cycle, its first step repeated at the end, or nothing. No recursion: a chain may be long."""
    done: set[str] = set()
    for start in needs:
        path: dict[str, None] = {}
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            unit, leaving = stack.pop()
            if leaving:
                path.popitem()
                done.add(unit)
                continue
            if unit in path:
                steps = list(path)
                return [*steps[steps.index(unit) :], unit]
            if unit in done:
                continue
            path[unit] = None
            stack.append((unit, True))
            stack.extend((need, False) for need in needs[unit])
    return []


def is_above(needs: Mapping[str, Iterable[str]], unit: str, other: str) -> bool:
    """Tell whether `unit` depends on `other`; nearest first, because loop-backs are mostly short."""
    seen = {unit}
    queue = deque(needs[unit])
    while queue:
        above = queue.popleft()
        if above == other:
            return True
        if above not in seen:
            seen.add(above)
            queue.extend(needs[above])
    return False
