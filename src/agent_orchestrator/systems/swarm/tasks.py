"""Reads a file of beads: one JSON object a line, our own tasks or what `bd export` writes. Strict, every fault with its line.

What a tracker says is not ready (not open, or waiting for something that is neither here nor closed) is held back, with
the reason; nothing is guessed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidId, InvalidSpec, Problem
from agent_orchestrator.systems.swarm.spec import PRIORITY

HOLDING = frozenset({"blocks", "parent-child", "conditional-blocks", "waits-for"})
"""Kinds of dependencies in a tracker that hold an issue back; the others only relate issues."""

CLOSED = frozenset({"closed", "tombstone"})
READY = "open"
ISSUE = "issue"
"""The `_type` of a line of work in newer trackers."""


class TaskLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of our own; what is left out comes from the command line."""

    id: str
    prompt: str
    priority: int = PRIORITY
    depends_on: tuple[str, ...] = ()
    agent: str | None = None
    repo: str | None = None
    branch: str | None = None
    template: str | None = None
    vars: dict[str, str] = {}
    verify: str | None = None
    timeout: str | int | float | None = None
    max_retries: int | None = None


class _Dependency(msgspec.Struct, kw_only=True):
    depends_on_id: str
    issue_id: str = ""
    type: str = "blocks"


class _Issue(msgspec.Struct, kw_only=True):
    """A tracker's line, as far as we look at it."""

    id: str
    title: str
    description: str = ""
    design: str = ""
    acceptance_criteria: str = ""
    notes: str = ""
    status: str = READY
    priority: int = PRIORITY
    dependencies: list[_Dependency] | None = None


class ParsedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The beads that can run, in the order of the file, and why others cannot."""

    tasks: tuple[TaskLine, ...]
    held: dict[str, str]
    lines: dict[str, int]
    """The line of each bead in the file."""
    closed: int = 0


def parse(text: str, file: str) -> ParsedTasks:
    """The tasks of a file; raises InvalidSpec with everything that is wrong."""
    return _Reader(file).read(text)


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._tasks: dict[str, TaskLine] = {}
        self._lines: dict[str, int] = {}
        self._closed: set[str] = set()
        self._held: dict[str, str] = {}
        self._tracked: set[str] = set()
        """Beads that came from a tracker: it may know others that are not in the file."""

    def read(self, text: str) -> ParsedTasks:
        """Line by line, then the graph."""
        # Only a line feed ends a line: JSON may hold what else Python takes for one, as U+2028.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                self._line(line, number)
        if not self._lines and not self._problems:
            self._problems.append(Problem("there is no bead in it: it has one JSON object a line"))
        self._stop_if_faulty()
        self._link()
        self._stop_if_faulty()
        cycle = find_cycle({task.id: task.depends_on for task in self._tasks.values()})
        if cycle:
            said = " -> ".join([*cycle, cycle[0]])
            self._problems.append(Problem(f"the beads wait for each other: {said}", self._lines[cycle[0]]))
        self._stop_if_faulty()
        return ParsedTasks(tasks=tuple(self._tasks.values()), held=self._held, lines=self._lines, closed=len(self._closed))

    def _stop_if_faulty(self) -> None:
        if self._problems:
            raise InvalidSpec(self._file, self._problems)

    def _line(self, line: str, number: int) -> None:
        try:
            document = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            self._problems.append(Problem(f"this line is not JSON: {error}", number))
            return
        if not isinstance(document, dict):
            self._problems.append(Problem("this line is not a JSON object", number))
            return
        if document.get("_type", ISSUE) != ISSUE and "prompt" not in document:
            return  # A tracker exports more than its work: memories, a header.
        tracked = "issue_type" in document or ("title" in document and "prompt" not in document)
        try:
            bead = checked_id(document.get("id"), "the bead's id")
            if bead in self._lines:
                self._problems.append(Problem(f"bead {bead} stands in line {self._lines[bead]} already", number))
                return
            self._lines[bead] = number
            if tracked:
                self._issue(msgspec.convert(_known(document), _Issue))
            else:
                self._own(msgspec.convert(document, TaskLine), number)
        except (InvalidId, msgspec.ValidationError) as error:
            self._problems.append(Problem(str(error), number))

    def _own(self, task: TaskLine, number: int) -> None:
        if not task.prompt.strip():
            self._problems.append(Problem(f"bead {task.id} has an empty prompt", number))
        self._tasks[task.id] = task

    def _issue(self, issue: _Issue) -> None:
        self._tracked.add(issue.id)
        if issue.status in CLOSED:
            self._closed.add(issue.id)
        elif issue.status != READY:
            self._held[issue.id] = f"it is {issue.status}"
        else:
            links = [one for one in issue.dependencies or [] if one.type in HOLDING and one.issue_id in ("", issue.id)]
            needs = tuple(dict.fromkeys(one.depends_on_id for one in links))
            self._tasks[issue.id] = TaskLine(id=issue.id, prompt=_instruction(issue), priority=issue.priority, depends_on=needs)

    def _link(self) -> None:
        """Drops needs that are met, holds back what waits for something that will not be done here."""
        waiting: dict[str, list[str]] = {}
        for bead, task in self._tasks.items():
            needs = tuple(need for need in task.depends_on if need not in self._closed)
            self._tasks[bead] = msgspec.structs.replace(task, depends_on=needs)
            for need in needs:
                if need in self._tasks:
                    waiting.setdefault(need, []).append(bead)
                elif bead in self._tracked or need in self._held:
                    why = self._held.get(need, "it is not in the file")
                    self._held.setdefault(bead, f"it waits for {need}: {why}")
                else:
                    self._problems.append(Problem(f"bead {bead} depends on {need}, which is not in the file", self._lines[bead]))
        stack = [bead for bead in self._held if bead in self._tasks]
        while stack:
            held = stack.pop()
            for below in waiting.get(held, ()):
                if below not in self._held:
                    self._held[below] = f"it waits for {held}, which is held back"
                    stack.append(below)
        for bead in self._held:
            self._tasks.pop(bead, None)


def find_cycle(needs: dict[str, tuple[str, ...]]) -> list[str]:
    """One cycle, each waiting for the next, or none."""
    done: set[str] = set()
    for start in needs:
        path: dict[str, int] = {}
        trail: list[tuple[str, int]] = [(start, 0)] if start not in done else []
        while trail:
            bead, at = trail[-1]
            path.setdefault(bead, len(trail) - 1)
            if at == len(needs[bead]):
                done.add(bead)
                del path[bead]
                trail.pop()
                continue
            trail[-1] = (bead, at + 1)
            need = needs[bead][at]
            if need in path:
                return [name for name, _ in trail[path[need] :]]
            if need not in done:
                trail.append((need, 0))
    return []


def _known(document: dict[str, Any]) -> dict[str, Any]:
    """Keep the fields that we look at; a tracker leaves out what is empty, or writes null."""
    return {name: document[name] for name in _Issue.__struct_fields__ if document.get(name) is not None}


def _instruction(issue: _Issue) -> str:
    parts = [issue.title.strip()]
    sections = {"Description": issue.description, "Design": issue.design, "Acceptance criteria": issue.acceptance_criteria}
    parts += [f"## {title}\n\n{text.strip()}" for title, text in {**sections, "Notes": issue.notes}.items() if text.strip()]
    return "\n\n".join(parts)
