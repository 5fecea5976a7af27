"""Reads a task document: every fault it has is found in one go, each with its line.

Pure: the text comes in, a plan goes out; which programs exist is told from outside. The document's shape is described in
docs/phases.md. Headings, sections and fields are known in the spellings of older tools too. What cannot be understood is
refused where somebody may rely on it, and pointed out where not.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent_orchestrator.errors import InvalidSpec, Problem
from agent_orchestrator.systems.phases.commands import Exists, presume
from agent_orchestrator.systems.phases.parse.blocks import Complain, Section, join_sections, read_sections
from agent_orchestrator.systems.phases.parse.criteria import DocumentReading, read_criteria
from agent_orchestrator.systems.phases.parse.settings import read_bounds, read_outer, read_supervision
from agent_orchestrator.systems.phases.parse.tasks import is_phase, read_phases
from agent_orchestrator.systems.phases.spec import Bounds, Criterion, PhasesPlan

__all__ = ["ParsedPlan", "parse_document"]

TITLE = re.compile(r"\W*(?:(?:unified|workflow)\s+)*task(?:\s+document)?\s*[:—–-]\s*(?P<name>.*)\Z", re.S | re.I)
PLACEHOLDER = re.compile(r"‹[^›\n]*›")

SECTIONS = {
    **dict.fromkeys(("goal", "objective", "goals"), "goal"),
    **dict.fromkeys(("context", "background"), "context"),
    **dict.fromkeys(("success criteria (global)", "global success criteria", "success criteria"), "criteria"),
    **dict.fromkeys(("safety bounds", "safety limits"), "bounds"),
    **dict.fromkeys(("phases & tasks", "phases and tasks", "phases", "tasks"), "phases"),
    **dict.fromkeys(("supervisor checks", "supervisor"), "supervisor"),
    **dict.fromkeys(("outer ralph loop", "outer ralph", "outer loop"), "outer"),
}
VERIFICATION = "verification requirements"


class ParsedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what a person should know about the file."""

    plan: PhasesPlan
    warnings: tuple[str, ...] = ()


def parse_document(text: str, file: str, exists: Exists = presume) -> ParsedPlan:
    """Read the plan in a task document, given which programs exist; raises InvalidSpec with every problem."""
    problems: list[Problem] = []
    warnings: list[str] = []

    def complain(message: str, line: int | None = None) -> None:
        problems.append(Problem(message, line))

    for number, line in enumerate(text.splitlines(), 1):
        if found := PLACEHOLDER.search(line):
            complain(f"the template's example {found[0]} is left in: write what is meant, or delete the line", number)
    sections = read_sections(text)
    sorted_parts = _sort(sections, complain, warnings)
    reading = DocumentReading(complain=complain, warn=warnings.append, exists=exists)
    plan = PhasesPlan(**_read_parts(sections, sorted_parts, reading))
    if problems:
        raise InvalidSpec(file, sorted(problems, key=lambda one: one.line or 0))
    return ParsedPlan(plan=plan, warnings=tuple(sorted(warnings, key=_line_of)))


def _line_of(warning: str) -> int:
    match = re.match(r"line (\d+)", warning)
    return int(match[1]) if match is not None else 0


def _read_parts(sections: list[Section], sorted_parts: dict[str, list[Section]], reading: DocumentReading) -> dict[str, Any]:
    parts = {name: join_sections(found) for name, found in sorted_parts.items()}
    complain = reading.complain
    made: dict[str, Any] = {
        "name": _title(sections, complain),
        "goal": _goal(parts, complain),
        "context": parts["context"].text if "context" in parts else "",
        "bounds": read_bounds(parts["bounds"], complain) if "bounds" in parts else Bounds(),
        **read_phases(sorted_parts.get("phases"), reading),
        **(read_supervision(parts["supervisor"], reading) if "supervisor" in parts else {}),
    }
    own: tuple[Criterion, ...] = ()
    if "criteria" in parts:
        own = read_criteria(parts["criteria"].entries, "a criterion without text", reading)
    outer = read_outer(parts["outer"], reading) if "outer" in parts else {}
    keys = {one.key for one in own}
    more = tuple(one for one in outer.pop("criteria", ()) if one.key not in keys)
    return {**made, **outer, "criteria": (*own, *more)}


def _sort(sections: list[Section], complain: Complain, warnings: list[str]) -> dict[str, list[Section]]:
    """Sort out the known sections, each with the deeper ones below it; phases may stand without a section of their own."""
    parts: dict[str, list[Section]] = {}
    name: str | None = None
    for section in sections:
        if section.level > 2:
            name = "phases" if is_phase(section) else name
            if name is not None:
                parts.setdefault(name, []).append(section)
            continue
        title = _plain(section.title)
        name = SECTIONS.get(title) if section.level == 2 else None
        if section.level == 2 and is_phase(section):
            name = "phases"
            parts.setdefault(name, []).append(section)
        elif section.level == 2 and name is None:
            way = "; write its commands as global criteria, as in - [ ] Tests pass: `npm test`" if title == VERIFICATION else ""
            warnings.append(f"line {section.line}: the section {section.title!r} is not read{way}")
        elif name is not None and name in parts:
            complain(f"the section {section.title!r} stands twice; keep one", section.line)
            name = None
        elif name is not None:
            parts[name] = [section]
    return parts


def _plain(title: str) -> str:
    """Give a title without numbers, signs and asterisks before and behind it."""
    return re.sub(r"^[\W\d_]+|[^\w)]+$", "", " ".join(title.lower().split()))


def _title(sections: list[Section], complain: Complain) -> str:
    heads = [section for section in sections if section.level == 1]
    match = TITLE.match(heads[0].title) if heads else None
    name = match["name"].strip() if match is not None else heads[0].title if heads else ""
    if not name:
        complain("the first heading must name the task: # Task: NAME", heads[0].line if heads else 1)
    elif len(heads) > 1:
        complain("a document describes one task: this is a second heading of the first level", heads[1].line)
    return name


def _goal(parts: dict[str, Section], complain: Complain) -> str:
    if "goal" not in parts:
        complain("the section ## Goal is missing: say what is to be reached", 1)
        return ""
    goal = parts["goal"]
    if not goal.text:
        complain("the goal is empty: say what is to be reached", goal.line)
    return goal.text
