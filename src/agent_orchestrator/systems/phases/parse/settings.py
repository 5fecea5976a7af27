"""The sections that are settings: safety bounds, the supervisor, the outer loop; in our spelling and the older one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.parse.blocks import Complain, Field, Section
from agent_orchestrator.systems.phases.parse.criteria import DocumentReading, read_criteria
from agent_orchestrator.systems.phases.spec import OUTER_ITERATIONS, Bounds, Supervision

BOUNDS = {
    **dict.fromkeys(
        ("maximum iterations per task", "max iterations per task", "maximum iterations", "max iterations"), "max_iterations"
    ),
    **dict.fromkeys(("maximum cost", "max cost", "cost limit", "budget"), "max_cost"),
    **dict.fromkeys(("maximum time", "max time", "time limit"), "max_time"),
}
SUPERVISION = {
    **dict.fromkeys(("enable", "enabled", "enable supervisor", "supervisor enabled"), "enable"),
    **dict.fromkeys(("auto-fix", "auto fix", "auto-fix minor issues", "auto fix minor issues"), "auto_fix"),
    **dict.fromkeys(("frequency", "check frequency"), "frequency"),
    **dict.fromkeys(("check for", "checks"), "focus"),
}
OUTER = {
    **dict.fromkeys(("enable", "enabled", "enable outer ralph", "enable outer ralph loop"), "enable"),
    **dict.fromkeys(("maximum iterations", "max iterations", "max"), "most"),
    **dict.fromkeys(("focus areas", "focus"), "focus"),
    **dict.fromkeys(("success criteria", "criteria"), "criteria"),
}
LISTS = frozenset(("frequency", "focus", "criteria"))
WORDS = {"yes": True, "true": True, "on": True, "enabled": True, "no": False, "false": False, "off": False, "disabled": False}
FREQUENCIES = {
    "every task": (True, True),
    "each task": (True, True),
    "before and after each task": (True, True),
    "before each task": (True, False),
    "after each task": (False, True),
    "on demand": (False, False),
    "pre task": (True, False),
    "post task": (False, True),
}
_ASIDE = re.compile(r"\s*(?:\([^)]*\)|\bper\b.*|\bin total\b.*|\btotal\b)\s*\Z", re.I)


def read_bounds(section: Section, complain: Complain) -> Bounds:
    """Read `## Safety Bounds`: a limit that is not understood is refused, somebody may rely on it."""
    bounds = Bounds()
    for name, field in _settings(section, BOUNDS, "Maximum cost", complain):
        if name is None:
            known = "Maximum iterations per task, Maximum cost, Maximum time"
            complain(f"{field.key!r} is no safety bound; there are: {known}", field.line)
            continue
        try:
            bounds = change_bounds(bounds, {name: _ASIDE.sub("", field.value)})
        except InvalidValue as error:
            complain(str(error), field.line)
    return bounds


def read_supervision(section: Section, reading: DocumentReading) -> dict[str, Any]:
    """Read `## Supervisor Checks`."""
    made: dict[str, Any] = {}
    for name, field in _settings(section, SUPERVISION, "Enable", reading.complain):
        if name == "enable":
            made["enabled"] = _switch(field, reading.complain)
        elif name == "auto_fix":
            made["auto_fix"] = _switch(field, reading.complain)
        elif name == "frequency":
            made["before"], made["after"] = _frequency(field, reading.complain)
        elif name == "focus":
            made["focus"] = tuple(field.chosen())
        else:
            reading.warn(f"line {field.line}: {field.key!r} is no setting of the supervisor, and is not used")
    return {"supervision": msgspec.structs.replace(Supervision(), **made)}


def read_outer(section: Section, reading: DocumentReading) -> dict[str, Any]:
    """Read `## Outer Ralph Loop`; its criteria are among those of the whole."""
    made: dict[str, Any] = {}
    for name, field in _settings(section, OUTER, "Maximum iterations", reading.complain):
        if name == "enable":
            made["outer_ralph"] = _switch(field, reading.complain)
        elif name == "focus":
            made["outer_focus"] = tuple(field.chosen())
        elif name == "criteria":
            made["criteria"] = read_criteria(field.entries, "a criterion of the outer loop has no text", reading)
        elif name == "most":
            made["outer_max"] = _outer_max(field, reading)
        else:
            reading.warn(f"line {field.line}: {field.key!r} is no setting of the outer loop, and is not used")
    return made


def _outer_max(field: Field, reading: DocumentReading) -> int:
    try:
        most = read_count(_ASIDE.sub("", field.value), field.key)
    except InvalidValue as error:
        reading.complain(str(error), field.line)
        return OUTER_ITERATIONS
    if most > OUTER_ITERATIONS:
        reading.warn(f"line {field.line}: {field.key} is {most}: the outer loop makes at most {OUTER_ITERATIONS} iterations")
    return min(most, OUTER_ITERATIONS)


def _settings(section: Section, known: dict[str, str], example: str, complain: Complain) -> list[tuple[str | None, Field]]:
    """Give the settings by their names, rows of a table among them; complain about what is not written as one."""
    fields = [*section.fields, *section.rows()]
    named = [(known.get(" ".join(field.key.lower().split())), field) for field in fields]
    _check_overlooked(
        section, known, fields, {field.line for name, field in named if name in LISTS and not field.value}, example, complain
    )
    seen: set[str] = set()
    for name, field in named:
        if name is not None and name in seen:
            complain(f"{field.key!r} stands twice; keep one", field.line)
        seen.add(name or "")
    return named


def _check_overlooked(
    section: Section, known: Collection[str], fields: list[Field], lists: set[int], example: str, complain: Complain
) -> None:
    """Complain about a setting that is not written as one: it may be the limit that somebody relies on."""
    taken = {field.line for field in fields}
    taken |= {entry.line for field in fields if field.line in lists for entry in field.entries}
    lost = {entry.line: entry.text for entry in section.entries if entry.item and entry.line not in taken}
    lost |= {line: text for line, (text, _) in section.unmarked(known).items()}
    for line, text in sorted(lost.items()):
        complain(f"{text!r} would not be read; write it as in - **{example}**: …", line)


def _frequency(field: Field, complain: Complain) -> tuple[bool, bool]:
    """Read when the supervisor looks: one of the ways, or several of them."""
    found = []
    for given in field.chosen():
        words = " ".join(re.sub(r"\(.*?\)|[_-]", " ", given.lower()).split())
        if words not in FREQUENCIES:
            known = "every task, before each task, after each task, on demand"
            complain(f"{field.key} is {given!r}: it must be one of {known}", field.line)
        found.append(FREQUENCIES.get(words, (True, True)))
    return any(before for before, _ in found), any(after for _, after in found)


def _switch(field: Field, complain: Complain) -> bool:
    value = " ".join(field.value.lower().split())
    word = value.split()[0].strip(".,;") if value else ""
    if word not in WORDS or "|" in value:
        complain(f"{field.key} is {value!r}: it must be yes or no", field.line)
    return WORDS.get(word, True)
