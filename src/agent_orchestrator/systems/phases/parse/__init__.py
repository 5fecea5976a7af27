"""Reads a task document strictly: every fault it has is found in one go, each with its line.

Pure: the text comes in, a plan goes out. The document's shape is described in docs/phases.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidSpec, InvalidValue, Problem
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.parse.blocks import Complain, Section, join_sections, read_boxes, read_sections
from agent_orchestrator.systems.phases.parse.tasks import read_phases
from agent_orchestrator.systems.phases.spec import OUTER_ITERATIONS, Bounds, PhasesPlan, Supervision

__all__ = ["Parsed", "parse_document"]

TITLE = re.compile(r"Task:\s*(?P<name>.*)\Z", re.S)
PLACEHOLDER = re.compile(r"‹[^›\n]*›")

SECTIONS = {
    "goal": "goal",
    "context": "context",
    "success criteria (global)": "criteria",
    "safety bounds": "bounds",
    "phases & tasks": "phases",
    "phases and tasks": "phases",
    "supervisor checks": "supervisor",
    "outer ralph loop": "outer",
}
BOUNDS = {"maximum iterations per task": "max_iterations", "maximum cost": "max_cost", "maximum time": "max_time"}

ENABLE = ("enable", "enabled")
AUTO_FIX = ("auto-fix", "auto fix")
OUTER_MAX = ("maximum iterations", "max iterations", "max")
SUPERVISION_KEYS = (*ENABLE, *AUTO_FIX, "frequency")
OUTER_KEYS = (*ENABLE, *OUTER_MAX)
WORDS = {"yes": True, "true": True, "on": True, "enabled": True, "no": False, "false": False, "off": False, "disabled": False}
FREQUENCIES = {
    "every task": (True, True),
    "before and after each task": (True, True),
    "before each task": (True, False),
    "pre_task": (True, False),
    "after each task": (False, True),
    "post_task": (False, True),
    "on demand": (False, False),
    "on_demand": (False, False),
}


class ParsedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what a person should know about the file."""

    plan: PhasesPlan
    warnings: tuple[str, ...] = ()


def parse_document(text: str, file: str) -> ParsedPlan:
    """Read the plan in a task document; raises InvalidSpec with every problem."""
    problems: list[Problem] = []

    def complain(message: str, line: int | None = None) -> None:
        problems.append(Problem(message, line))

    for number, line in enumerate(text.splitlines(), 1):
        if found := PLACEHOLDER.search(line):
            complain(f"the template's example {found[0]} is left in: write what is meant, or delete the line", number)
    sections = read_sections(text)
    warnings: list[str] = []
    sorted_parts = _sort(sections, complain, warnings)
    parts = {name: join_sections(found) for name, found in sorted_parts.items()}
    plan = PhasesPlan(
        name=_title(sections, complain),
        goal=_goal(parts, complain),
        context=parts["context"].text if "context" in parts else "",
        criteria=read_boxes(parts["criteria"].entries, "a criterion without text", complain) if "criteria" in parts else (),
        bounds=_bounds(parts["bounds"], complain) if "bounds" in parts else Bounds(),
        **read_phases(sorted_parts.get("phases"), complain),
        **(read_supervision(parts["supervisor"], complain) if "supervisor" in parts else {}),
        **(read_outer(parts["outer"], complain) if "outer" in parts else {}),
    )
    silent = [section for section in sorted_parts.get("phases", []) if section.level < 4 and section.text]
    warnings += [f"line {one.line}: what stands below {one.title!r} is not read; the context and tasks are" for one in silent]
    if problems:
        raise InvalidSpec(file, sorted(problems, key=lambda one: one.line or 0))
    return ParsedPlan(plan=plan, warnings=tuple(warnings))


def _sort(sections: list[Section], complain: Complain, warnings: list[str]) -> dict[str, list[Section]]:
    """Sort out the known sections, each with the deeper ones below it."""
    parts: dict[str, list[Section]] = {}
    name: str | None = None
    for section in sections:
        if section.level > 2:
            if name is not None:
                parts[name].append(section)
            continue
        name = SECTIONS.get(" ".join(section.title.lower().split())) if section.level == 2 else None
        if section.level == 2 and name is None:
            warnings.append(f"line {section.line}: the section {section.title!r} is not read")
        elif name is not None and name in parts:
            complain(f"the section {section.title!r} stands twice; keep one", section.line)
            name = None
        elif name is not None:
            parts[name] = [section]
    return parts


def _title(sections: list[Section], complain: Complain) -> str:
    heads = [section for section in sections if section.level == 1]
    match = TITLE.match(heads[0].title) if heads else None
    if match is None or not match["name"].strip():
        complain("the first heading must name the task: # Task: NAME", heads[0].line if heads else 1)
        return ""
    if len(heads) > 1:
        complain("a document describes one task: this is a second heading of the first level", heads[1].line)
    return match["name"].strip()


def _goal(parts: dict[str, Section], complain: Complain) -> str:
    if "goal" not in parts:
        complain("the section ## Goal is missing: say what is to be reached", 1)
        return ""
    goal = parts["goal"]
    if not goal.text:
        complain("the goal is empty: say what is to be reached", goal.line)
    return goal.text


def _bounds(section: Section, complain: Complain) -> Bounds:
    bounds = Bounds()
    check_fields(section, BOUNDS, "Maximum cost", complain)
    for field in section.fields:
        name = BOUNDS.get(field.key.lower())
        if name is None:
            known = "Maximum iterations per task, Maximum cost, Maximum time"
            complain(f"{field.key!r} is no safety bound; there are: {known}", field.line)
            continue
        try:
            bounds = change_bounds(bounds, {name: field.value})
        except InvalidValue as error:
            complain(str(error), field.line)
    return bounds


def check_fields(section: Section, known: Collection[str], example: str, complain: Complain) -> None:
    """Complain about a setting that is not written as one: it may be the limit that somebody relies on."""
    taken = {field.line for field in section.fields}
    lost = {entry.line: entry.text for entry in section.entries if entry.item and entry.line not in taken}
    lost |= {line: text for line, (text, _) in section.unmarked(known).items()}
    for line, text in sorted(lost.items()):
        complain(f"{text!r} would not be read; write it as in - **{example}**: …", line)
    keys = [field.key.lower() for field in section.fields]
    for number, field in enumerate(section.fields):
        if field.key.lower() in keys[:number]:
            complain(f"{field.key!r} stands twice; keep one", field.line)


def read_supervision(section: Section, complain: Complain) -> dict[str, Any]:
    """Read `## Supervisor Checks`."""
    made = Supervision()
    check_fields(section, SUPERVISION_KEYS, "Enable", complain)
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ENABLE:
            made = msgspec.structs.replace(made, enabled=_switch(field.key, value, field.line, complain))
        elif key in AUTO_FIX:
            made = msgspec.structs.replace(made, auto_fix=_switch(field.key, value, field.line, complain))
        elif key == "frequency":
            if value not in FREQUENCIES:
                known = "every task, before each task, after each task, on demand"
                complain(f"Frequency is {field.value!r}: it must be one of {known}", field.line)
            before, after = FREQUENCIES.get(value, (True, True))
            made = msgspec.structs.replace(made, before=before, after=after)
        else:
            complain(f"{field.key!r} is no setting of the supervisor; there are: Enable, Frequency, Auto-fix", field.line)
    return {"supervision": made}


def read_outer(section: Section, complain: Complain) -> dict[str, Any]:
    """Read `## Outer Ralph Loop`."""
    made: dict[str, Any] = {}
    check_fields(section, OUTER_KEYS, "Maximum iterations", complain)
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ENABLE:
            made["outer_ralph"] = _switch(field.key, value, field.line, complain)
        elif key in OUTER_MAX:
            try:
                made["outer_max"] = read_count(value, field.key)
            except InvalidValue as error:
                complain(str(error), field.line)
            if made.get("outer_max", 1) > OUTER_ITERATIONS:
                complain(f"{field.key} is {value}: the outer loop makes at most {OUTER_ITERATIONS} iterations", field.line)
        else:
            complain(f"{field.key!r} is no setting of the outer loop; there are: Enable, Maximum iterations", field.line)
    return made


def _switch(key: str, value: str, line: int, complain: Complain) -> bool:
    word = value.split()[0].strip(".,;") if value else ""
    if word not in WORDS:
        complain(f"{key} is {value!r}: it must be yes or no", line)
    return WORDS.get(word, True)
