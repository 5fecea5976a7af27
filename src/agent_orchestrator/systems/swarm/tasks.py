"""Reads a file of beads: one JSON object a line, our own tasks or what `bd export` writes. Strict, every fault with its line.

What a tracker says is not ready (not open, or waiting for something that is neither here nor closed) is held back, with
the reason; nothing is guessed.
"""

from __future__ import annotations

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidId, InvalidSpec, Problem
from agent_orchestrator.systems.swarm.spec import PRIORITY
from agent_orchestrator.systems.swarm.tracker import Tracker, TrackerIssue, read_issue

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


class ParsedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The beads that can run, in the order of the file, and why others cannot."""

    tasks: tuple[TaskLine, ...]
    held: dict[str, str]
    lines: dict[str, int]
    """The line of each bead in the file."""
    closed: int = 0


def parse(text: str, file: str, now_us: int) -> ParsedTasks:
    """The tasks of a file; raises InvalidSpec with everything that is wrong. An issue may be deferred until a time after now."""
    return _Reader(file, now_us).read(text)


class _Reader:
    def __init__(self, file: str, now_us: int) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._tasks: dict[str, TaskLine] = {}
        self._lines: dict[str, int] = {}
        self._held: dict[str, str] = {}
        self._tracker = Tracker(now_us)

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
        closed = sum(issue.is_closed for issue in self._tracker.issues.values())
        return ParsedTasks(tasks=tuple(self._tasks.values()), held=self._held, lines=self._lines, closed=closed)

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
                self._issue(read_issue(document))
            else:
                self._own(typed.convert(document, TaskLine), number)
        except (InvalidId, msgspec.ValidationError) as error:
            self._problems.append(Problem(str(error), number))

    def _own(self, task: TaskLine, number: int) -> None:
        if not task.prompt.strip():
            self._problems.append(Problem(f"bead {task.id} has an empty prompt", number))
        self._tasks[task.id] = task

    def _issue(self, issue: TrackerIssue) -> None:
        self._tracker.add(issue)
        if not issue.is_closed:
            self._tasks[issue.id] = TaskLine(id=issue.id, prompt=issue.instruction, priority=issue.priority)

    def _link(self) -> None:
        """Ask the tracker what its issues wait for, and hold back what waits for something that will not be done here."""
        issues = self._tracker.issues
        reasons = {bead: why for bead in issues if bead in self._tasks and (why := self._tracker.find_reason(bead)) is not None}
        for bead in reasons:
            del self._tasks[bead]
        self._held = {bead: why for bead, why in reasons.items() if not self._tracker.is_silent(bead)}
        waiting: dict[str, list[str]] = {}
        for bead, task in self._tasks.items():
            own = {need: bead for need in task.depends_on if need not in issues or not issues[need].is_closed}
            needs = self._tracker.find_needs(bead) if bead in issues else own
            self._tasks[bead] = msgspec.structs.replace(task, depends_on=tuple(needs))
            for need, waits in needs.items():
                if need in self._tasks:
                    waiting.setdefault(need, []).append(bead)
                elif bead in issues or need in reasons:
                    who = "it" if waits == bead else f"{waits}, which it is part of,"
                    self._held.setdefault(bead, f"{who} waits for {need}: {reasons.get(need, 'it is not in the file')}")
                else:
                    self._problems.append(Problem(f"bead {bead} depends on {need}, which is not in the file", self._lines[bead]))
        self._hold_back(waiting)

    def _hold_back(self, waiting: dict[str, list[str]]) -> None:
        """Hold back what waits for something that is held back."""
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
