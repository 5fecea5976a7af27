"""Reads what the roles add to their reports: strictly, each wrong field with its path, never a guess.

`plan` makes the project manager's groups safe: ids that can be parts of paths, branches of their own, no cycles.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.limits import TAIL_CHARS
from agent_orchestrator.core.report import Report
from agent_orchestrator.errors import InvalidId
from agent_orchestrator.systems.team.events import PlannedGroup, PlannedTask
from agent_orchestrator.systems.team.state import PM

T = TypeVar("T")

GROUPS_MAX = 100
TASKS_MAX = 1_000
"""A plan is a page; more is a mistake."""

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}\Z")
_BAD_BRANCH = re.compile(r"\.\.|//|/\.|\.lock(?:/|\Z)|[./]\Z|\Arefs/|(?:\A|_)HEAD\Z|\Aorc(?:/|\Z)")
"""What git refuses or takes for something else, and what is ours."""


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many tests there were; `failed` follows from the others when it is left out."""

    total: int
    passed: int
    failed: int | None = None

    def plain(self) -> dict[str, int]:
        """As group_status.json has it."""
        return {"total": self.total, "passed": self.passed, "failed": self._failed}

    @property
    def _failed(self) -> int:
        return self.failed if self.failed is not None else self.total - self.passed

    def __post_init__(self) -> None:
        if self.total < 0 or self.passed < 0 or self._failed < 0 or self.passed + self._failed > self.total:
            raise ValueError(f"{self.passed} passed and {self._failed} failed of {self.total} cannot be")


class Issue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the tech lead wants changed."""

    priority: Literal["critical", "high", "medium", "low"] | None = None
    title: str | None = None
    location: str | None = None
    description: str | None = None
    fix_suggestion: str | None = None

    def line(self) -> str:
        """In a line, for the developer."""
        head = " ".join(part for part in (f"[{self.priority}]" if self.priority else "", self.title or "") if part)
        where = f" ({self.location})" if self.location else ""
        said = ": ".join(part for part in (f"{head}{where}".strip(), self.description or "") if part)
        return f"{said}; suggestion: {self.fix_suggestion}" if self.fix_suggestion else said


class Quality(msgspec.Struct, frozen=True, omit_defaults=True):
    """Numbers of a review."""

    code_quality_score: float | None = None
    security_issues_count: int | None = None


class Claim(msgspec.Struct, frozen=True):
    """What somebody says of one requirement."""

    text: str
    met: bool
    evidence: str = ""


class Developed(msgspec.Struct, frozen=True):
    """A developer's fields."""

    unit_tests: Counts | None = None
    notes: str = ""
    blocker: str = ""


class Results(msgspec.Struct, frozen=True):
    """Results by kind of test."""

    integration_tests: Counts | None = None
    contract_tests: Counts | None = None
    e2e_tests: Counts | None = None


class Tested(msgspec.Struct, frozen=True):
    """QA's fields."""

    test_results: Results = Results()
    failures: list[str | dict[str, Any]] = []


class Judged(msgspec.Struct, frozen=True):
    """The tech lead's fields."""

    feedback: str = ""
    issues: list[Issue] = []
    actionable_items: list[str] = []
    quality: Quality = Quality()
    requirements: list[Claim] = []


class _Group(msgspec.Struct, frozen=True):
    id: str
    name: str = ""
    tasks: list[str] = []
    files_affected: list[str] = []
    branch_name: str | None = None
    can_parallel: bool = True
    depends_on: list[str] = []
    complexity: Literal["low", "medium", "high"] | None = None
    estimated_effort_minutes: float | None = None


class _Task(msgspec.Struct, frozen=True):
    id: str
    description: str = ""
    group_id: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """The project manager's fields."""

    mode: Literal["simple", "parallel"] | None = None
    mode_reasoning: str = ""
    tasks: list[_Task] = []
    groups: list[_Group] = []
    questions: list[str] = []
    requirements: list[Claim] | None = None


class Drawn(msgspec.Struct, frozen=True):
    """A plan that can be carried out."""

    tasks: tuple[PlannedTask, ...]
    groups: tuple[PlannedGroup, ...]


def read(report: Report, kind: type[T]) -> T | Failure:
    """The role's fields of a report, or the failure that says what is wrong with them."""
    try:
        return msgspec.convert({name: value for name, value in report.fields.items() if value is not None}, kind)
    except msgspec.ValidationError as error:
        return invalid(f"the report has a wrong field: {error}")


def invalid(message: str) -> Failure:
    """A report that cannot be used."""
    return Failure(kind=FailureKind.REPORT_INVALID, message=message)


def clip(text: str) -> str:
    """What is kept of what an agent or a person says."""
    text = text.strip()
    return text if len(text) <= TAIL_CHARS else text[: TAIL_CHARS - 1] + "…"


def draw(proposal: Proposal, known: Mapping[str, str], tasks: Collection[str], taken: Collection[str]) -> Drawn | Failure:
    """The groups of a proposal, checked: `known` are groups that exist with their branches, `taken` other branches."""
    if len(proposal.groups) > GROUPS_MAX or len(proposal.tasks) > TASKS_MAX:
        return invalid(f"the plan has more than {GROUPS_MAX} groups or {TASKS_MAX} tasks")
    ids = [group.id for group in proposal.groups]
    for number, name in enumerate(ids):
        if (why := _id_fault(name, ids[:number], known)) is not None:
            return invalid(f"groups[{number}].id: {why}")
    everybody = {*ids, *known}
    for number, group in enumerate(proposal.groups):
        for other in group.depends_on:
            if other not in everybody or other == group.id:
                return invalid(f"groups[{number}].depends_on: there is no other group {other!r}")
    if (loop := _cycle({group.id: group.depends_on for group in proposal.groups})) is not None:
        return invalid(f"groups: {' depends on '.join(loop)}: a cycle")
    drawn = _tasks(proposal, ids, tasks)
    if isinstance(drawn, Failure):
        return drawn
    branches = {*taken, *known.values()}
    groups = []
    for group in proposal.groups:
        branch = _branch(group, branches)
        branches.add(branch)
        groups.append(_planned(group, branch, drawn))
    return Drawn(drawn, tuple(groups))


def _id_fault(name: str, earlier: list[str], known: Collection[str]) -> str | None:
    try:
        checked_id(name, "The group")
    except InvalidId as error:
        return str(error)
    if name == PM or "~" in name:
        return f"{name!r} is a name that groups cannot have"
    same = [other for other in (*earlier, *known) if other.casefold() == name.casefold()]
    return f"{name!r} names two groups" if same else None


def _tasks(proposal: Proposal, ids: list[str], known: Collection[str]) -> tuple[PlannedTask, ...] | Failure:
    owner = {task: group.id for group in reversed(proposal.groups) for task in group.tasks}
    seen: set[str] = set(known)
    found = []
    for number, task in enumerate(proposal.tasks):
        group = task.group_id or owner.get(task.id, "")
        if task.id in seen:
            return invalid(f"tasks[{number}].id: {task.id!r} names two tasks")
        if group and group not in ids:
            return invalid(f"tasks[{number}].group_id: there is no group {group!r}")
        seen.add(task.id)
        found.append(PlannedTask(id=task.id, description=task.description, group_id=group))
    more = [PlannedTask(id=name, group_id=group) for name, group in sorted(owner.items()) if name not in seen]
    return (*found, *more)


def _planned(group: _Group, branch: str, tasks: tuple[PlannedTask, ...]) -> PlannedGroup:
    mine = dict.fromkeys([*group.tasks, *(task.id for task in tasks if task.group_id == group.id)])
    return PlannedGroup(
        id=group.id,
        name=group.name or f"Group {group.id}",
        tasks=tuple(mine),
        files_affected=tuple(group.files_affected),
        branch_name=branch,
        can_parallel=group.can_parallel,
        depends_on=tuple(dict.fromkeys(group.depends_on)),
        complexity=group.complexity,
        estimated_effort_minutes=group.estimated_effort_minutes,
    )


def _branch(group: _Group, taken: Collection[str]) -> str:
    """The branch that was asked for, or one made of the name; a number is added until nobody else has it."""
    wanted = group.branch_name or ""
    if not _BRANCH.match(wanted) or _BAD_BRANCH.search(wanted):
        slug = re.sub(r"[^a-z0-9]+", "-", group.name.lower()).strip("-")[:30].strip("-")
        wanted = f"feature/group-{group.id}" + (f"-{slug}" if slug else "")
    branch, number = wanted, 1
    while any(branch == other or branch.startswith(f"{other}/") or other.startswith(f"{branch}/") for other in taken):
        number += 1
        branch = f"{wanted.replace('/', '-')}-{number}" if number > len(taken) + 1 else f"{wanted}-{number}"
    return branch


def _cycle(needs: Mapping[str, list[str]]) -> list[str] | None:
    """One cycle, as the names along it, or None."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        stack = [(start, iter(needs[start]))] if start not in done else []
        path += [start] if stack else []
        while stack:
            above = next(stack[-1][1], None)
            if above is None:
                done.add(stack.pop()[0])
                path.pop()
            elif above in path:
                return [*path[path.index(above) :], above]
            elif above in needs and above not in done:
                stack.append((above, iter(needs[above])))
                path.append(above)
    return None
