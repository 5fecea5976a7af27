"""Reads a task document strictly: every fault it has is found in one go, each with its line.

Pure: the text comes in, a `Plan` goes out. The document's shape is described in docs/phases.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from agent_orchestrator.errors import InvalidSpec, InvalidValue, Problem
from agent_orchestrator.systems.phases.bounds import with_bounds
from agent_orchestrator.systems.phases.parse.blocks import Entry, Section, joined, read_sections
from agent_orchestrator.systems.phases.parse.switches import only_fields, read_outer, read_supervision
from agent_orchestrator.systems.phases.parse.tasks import read_phases
from agent_orchestrator.systems.phases.spec import Bounds, Criterion, Plan, make_criteria

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

Complain = Callable[[str, int | None], None]


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what a person should know about the file."""

    plan: Plan
    warnings: tuple[str, ...] = ()


def parse_document(text: str, file: str) -> Parsed:
    """The plan in a task document; raises InvalidSpec with every problem."""
    problems: list[Problem] = []

    def complain(message: str, line: int | None = None) -> None:
        problems.append(Problem(message, line))

    for number, line in enumerate(text.splitlines(), 1):
        if found := PLACEHOLDER.search(line):
            complain(f"the template's example {found[0]} is left in: write what is meant, or delete the line", number)
    sections = read_sections(text)
    warnings: list[str] = []
    sorted_parts = _sort(sections, complain, warnings)
    parts = {name: joined(found) for name, found in sorted_parts.items()}
    plan = Plan(
        name=_title(sections, complain),
        goal=_goal(parts, complain),
        context=parts["context"].text if "context" in parts else "",
        criteria=read_boxes(parts["criteria"].entries, complain) if "criteria" in parts else (),
        bounds=_bounds(parts["bounds"], complain) if "bounds" in parts else Bounds(),
        **read_phases(sorted_parts.get("phases"), complain),
        **(read_supervision(parts["supervisor"], complain) if "supervisor" in parts else {}),
        **(read_outer(parts["outer"], complain) if "outer" in parts else {}),
    )
    silent = [section for section in sorted_parts.get("phases", []) if section.level < 4 and section.text]
    warnings += [f"line {one.line}: what stands below {one.title!r} is not read; the context and tasks are" for one in silent]
    if problems:
        raise InvalidSpec(file, sorted(problems, key=lambda one: one.line or 0))
    return Parsed(plan=plan, warnings=tuple(warnings))


def _sort(sections: list[Section], complain: Complain, warnings: list[str]) -> dict[str, list[Section]]:
    """The known sections, each with the deeper ones below it."""
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


def read_boxes(entries: tuple[Entry, ...], complain: Complain) -> tuple[Criterion, ...]:
    """Checkboxes as criteria."""
    texts: list[tuple[str, str | None]] = []
    for entry in entries:
        text = entry.box
        if text is None:
            if entry.item:
                complain(f"a criterion is a checkbox: write - [ ] {entry.text}", entry.line)
        elif not text:
            complain("a criterion without text: say what must be true", entry.line)
        else:
            texts.append((text, entry.code))
    return make_criteria(texts)


def _bounds(section: Section, complain: Complain) -> Bounds:
    bounds = Bounds()
    only_fields(section, BOUNDS, "Maximum cost", complain)
    for field in section.fields:
        name = BOUNDS.get(field.key.lower())
        if name is None:
            known = "Maximum iterations per task, Maximum cost, Maximum time"
            complain(f"{field.key!r} is no safety bound; there are: {known}", field.line)
            continue
        try:
            bounds = with_bounds(bounds, {name: field.value})
        except InvalidValue as error:
            complain(str(error), field.line)
    return bounds
