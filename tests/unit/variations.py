"""Variations of a state file: any of its fields odd, spelled otherwise, there twice, missing or new; and what was said of each.

Every field of an example is varied, so that no field can be forgotten by a list of them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from agent_orchestrator.core.foreign.account import FieldAccount

EXAMPLES = Path(__file__).parents[1] / "seeds" / "data"
EMPTY: tuple[Any, ...] = (None, "", [], {})
ODD: tuple[Any, ...] = (
    *(None, "", " ", "odd", "✅", "Done", "in-progress", "7", "-3", "2026-02-02T21:00:00Z", "$START", "x" * 400),
    *(-1, 0, 3, 2.5, -0.5, 2**70, 1e300, 1770915600, 1770915600000, True, False),
    *([], {}, ["x"], [7, None, "y"], [{"x_in": 1}], {"x_in": {"x_deep": [1]}}),
)
"""Values as they stand in files that agents and people have written."""
Step = str | int


def example(name: str) -> Any:
    """Read an example of a seed."""
    return msgspec.json.decode((EXAMPLES / name).read_bytes())


def walk(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Give every field and entry of a document with its path, outer ones first."""
    if path:
        yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from walk(inner, (*path, key))


@st.composite
def vary(draw: st.DrawFn, document: Any, most: int = 3) -> Any:
    """Draw the document with some of its fields changed."""
    varied = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, most))):
        places = [path for path, _ in walk(varied)]
        if not places:
            return varied
        path = draw(st.sampled_from(places))
        holder = varied
        for step in path[:-1]:
            holder = holder[step]
        _change(draw, holder, path[-1])
    return varied


def _change(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        return
    match draw(st.sampled_from(["odd", "odd", "respell", "twice", "drop", "add"])):
        case "odd":
            holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        case "respell":
            other = draw(st.sampled_from(_spellings(key)))
            renamed = {other if name == key else name: value for name, value in holder.items()}
            holder.clear()
            holder.update(renamed)
        case "twice":
            holder[draw(st.sampled_from(_spellings(key)))] = copy.deepcopy(draw(st.sampled_from((*ODD, holder[key]))))
        case "drop":
            del holder[key]
        case "add":
            holder["x_more"] = copy.deepcopy(draw(st.sampled_from(ODD)))


def _spellings(key: str) -> list[str]:
    first, *rest = key.split("_")
    return ["".join([first, *(part.capitalize() for part in rest)]), key.replace("_", "-"), key.replace("_", " ").title()]


def spell_path(path: tuple[Step, ...], under: str = "") -> str:
    """Write a path as accounts do: `task_groups[0].name`."""
    text = under
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def find_unsaid(document: Any, account: FieldAccount, under: str = "", whole: str = "$^") -> list[str]:
    """List the fields with a value that the account does not mention.

    A field is mentioned by a line of its own, or by one that changes or leaves out what it is in. That what it is in was taken
    says nothing of it, unless it is a list of plain values or a field that is taken whole, by its path.
    """
    taken = {_head(line) for line in account.lines("taken")}
    others = {_head(line) for kind in ("changed", "left") for line in account.lines(kind)}
    unsaid = []
    for path, value in walk(document):
        if isinstance(value, dict | list) or value in EMPTY:
            continue
        around = [spell_path(path[:depth], under) for depth in range(1, len(path) + 1)]
        own = around[-1]
        inside = [name for name in around if re.search(whole, name)]
        inside += around[-2:-1] if isinstance(path[-1], int) else []
        if {own, _bare(own)} & (taken | others):
            continue
        if any({name, _bare(name)} & others for name in (*around, under) if name):
            continue
        if not any({name, _bare(name)} & taken for name in inside):
            unsaid.append(own)
    return unsaid


def _head(line: str) -> str:
    """Give the path that a line begins with: keys may have spaces, so it ends where its sentence begins."""
    return re.split(r": | \(| as ", line, maxsplit=1)[0]


def _bare(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)
