"""Makes the groups of a project manager safe: ids that can be parts of paths, branches of their own, no cycles."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from agent_orchestrator.core.failure import Failure, invalid_report
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidId
from agent_orchestrator.systems.team.events import PlannedGroup, PlannedTask
from agent_orchestrator.systems.team.roles import Proposal, ReportedGroup
from agent_orchestrator.systems.team.state import PM

GROUPS_MAX = 100
TASKS_MAX = 1_000
"""A plan is a page; more is a mistake."""

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}\Z")
_BAD_BRANCH = re.compile(r"\.\.|//|/\.|\.lock(?:/|\Z)|[./]\Z|\Arefs/|(?:\A|_)HEAD\Z|\Aorc(?:/|\Z)")
"""Names that git refuses or takes for something else, and names that are ours."""


class DrawnPlan(msgspec.Struct, frozen=True):
    """A plan that can be carried out."""

    tasks: tuple[PlannedTask, ...]
    groups: tuple[PlannedGroup, ...]


def draw(proposal: Proposal, known: Mapping[str, str], tasks: Collection[str], taken: Collection[str]) -> DrawnPlan | Failure:
    """Check the groups of a proposal: `known` are groups that exist with their branches, `taken` other branches."""
    if len(proposal.groups) > GROUPS_MAX or len(proposal.tasks) > TASKS_MAX:
        return invalid_report(f"the plan has more than {GROUPS_MAX} groups or {TASKS_MAX} tasks")
    ids = [group.id for group in proposal.groups]
    for number, name in enumerate(ids):
        if (why := _id_fault(name, ids[:number], known)) is not None:
            return invalid_report(f"groups[{number}].id: {why}")
    everybody = {*ids, *known}
    for number, group in enumerate(proposal.groups):
        for other in group.depends_on:
            if other not in everybody or other == group.id:
                return invalid_report(f"groups[{number}].depends_on: there is no other group {other!r}")
    if (loop := _cycle({group.id: group.depends_on for group in proposal.groups})) is not None:
        return invalid_report(f"groups: {' depends on '.join(loop)}: a cycle")
    drawn = _tasks(proposal, ids, tasks)
    if isinstance(drawn, Failure):
        return drawn
    branches = {*taken, *known.values()}
    groups = []
    for group in proposal.groups:
        branch = _branch(group, branches)
        branches.add(branch)
        groups.append(_planned(group, branch, drawn))
    return DrawnPlan(drawn, tuple(groups))


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
            return invalid_report(f"tasks[{number}].id: {task.id!r} names two tasks")
        if group and group not in ids:
            return invalid_report(f"tasks[{number}].group_id: there is no group {group!r}")
        seen.add(task.id)
        found.append(PlannedTask(id=task.id, description=task.description, group_id=group))
    more = [PlannedTask(id=name, group_id=group) for name, group in sorted(owner.items()) if name not in seen]
    return (*found, *more)


def _planned(group: ReportedGroup, branch: str, tasks: tuple[PlannedTask, ...]) -> PlannedGroup:
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


def _branch(group: ReportedGroup, taken: Collection[str]) -> str:
    """Give the branch that was asked for, or one made of the name; a number is added until nobody else has it."""
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
    """Find a cycle, as the names along it, or None."""
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
