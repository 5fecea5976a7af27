"""The plan in a foreign `pm_state.json`: its groups and tasks as lists, maps or texts, and which of them are done.

Done stays done: a group is finished when any place of the file says so, be it its own status or `completed_groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.values import label_of
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidId
from agent_orchestrator.systems.team.fields import LEFT_OUT, Listed, TeamFields, list_entries
from agent_orchestrator.systems.team.foreign_tasks import ForeignTasks
from agent_orchestrator.systems.team.spellings import SKIPPED, fold, make_id, read_status, split_group
from agent_orchestrator.systems.team.state import PM

_LISTS = {
    "complete": ("completed_groups", "complete_groups", "done_groups", "finished_groups", "approved_groups"),
    SKIPPED: ("skipped_groups", "cancelled_groups", "deferred_groups"),
    "in_progress": ("in_progress_groups", "active_groups", "current_groups"),
    "pending": ("pending_groups", "remaining_groups", "todo_groups"),
}
"""The lists that say how far groups are; what an earlier one says stands."""


class ForeignGroup(msgspec.Struct, kw_only=True):
    """A group as the file has it, with the path at which it stands there."""

    where: str
    id: str
    name: str = ""
    tasks: list[str] = []
    files_affected: list[str] = []
    branch_name: str | None = None
    status: str | None = None
    can_parallel: bool | None = None
    depends_on: list[str] = []
    complexity: str | None = None
    estimated_effort_minutes: float | None = None

    def proposed(self) -> dict[str, Any]:
        """Give the group as a project manager would propose it."""
        left = ("where", "status")
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None and name not in left}


_Below = tuple[ForeignGroup, list[Listed], list[Listed]]
"""A group, its tasks, and those of them that it calls done."""


class ForeignPlan:
    """The groups and tasks of a file; groups are found by any of the names that the file has for them."""

    def __init__(self, account: FieldAccount) -> None:
        """Begin without groups; what is changed goes to the account."""
        self.groups: list[ForeignGroup] = []
        self.tasks = ForeignTasks(account)
        self._names: dict[str, ForeignGroup] = {}
        self._account = account

    def find(self, name: object) -> ForeignGroup | None:
        """Find a group by its id, or by another spelling of it."""
        text = label_of(name)
        if text is None:
            return None
        return self._names.get(text) or self._names.get(fold(text)) or self._names.get(fold(split_group(text)[0]))

    def read(self, manager: TeamFields, statuses: Mapping[str, tuple[str, Any]]) -> None:
        """Read the groups and tasks of a `pm_state.json`; `statuses` names the groups when it does not."""
        given = manager.take("task_groups", "groups")
        entries = list_entries(given, manager.path("task_groups"), self._account)
        self.tasks.read_all(manager)
        below: list[_Below] = []
        for where, key, entry in entries:
            below += self._read_group(where, key, entry)
        self._read_lists(manager)
        self._name_groups(statuses)
        self._resolve_owners()
        for group, tasks, done in below:
            group.tasks = list(dict.fromkeys(self.tasks.read_group(group.id, tasks, done)))
        self._own_tasks()
        self._leave_skipped()
        self._order()

    def _add(self, where: str, wanted: str, **fields: Any) -> ForeignGroup:
        name = self._free(wanted)
        if name != wanted:
            self._account.change(f"{where}: the id of the group was {wanted!r}, is {name}")
        group = ForeignGroup(where=where, id=name, **fields)
        self.groups.append(group)
        for known in (wanted, fold(wanted), name, fold(name), fold(group.name)):
            if known:
                self._names.setdefault(known, group)
        return group

    def _free(self, wanted: str) -> str:
        taken = {group.id.casefold() for group in self.groups}
        try:
            name = checked_id(wanted, "The group")
        except InvalidId:
            name = make_id(wanted) or "group"
        name = f"group-{name}" if name == PM or "~" in name else name
        free, number = name, 1
        while free.casefold() in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    def _read_group(self, where: str, key: str | None, entry: Any) -> list[_Below]:
        """Read one group; give its tasks, for when all tasks are known."""
        if isinstance(entry, dict):
            return self._read_object(where, key, TeamFields(entry, self._account, where))
        if isinstance(entry, list) and key is not None:
            return [(self._add(where, key), list_entries(entry, where, self._account), [])]
        text = label_of(entry)
        if key is not None and entry in (None, True, False, ""):
            self._add(where, key, status="complete" if entry is True else None)
        elif text is None:
            self._account.change(f"{where}: is no group; {LEFT_OUT}")
        elif key is not None:
            status = read_status(text)
            self._add(where, key, status=status, name="" if status else text)
        else:
            wanted, name = split_group(text)
            self._add(where, wanted, name=name or (text if text != make_id(text) else ""))
        return []

    def _read_object(self, where: str, key: str | None, fields: TeamFields) -> list[_Below]:
        name = fields.take_text("name", "group_name", "title", "description", "feature") or ""
        wanted = fields.take_text("id", "group_id", "group") or key or split_group(name)[0]
        if not wanted:
            wanted = f"group-{len(self.groups) + 1}"
            self._account.change(f"{where}.id: was missing, is {wanted}")
        status = fields.take_status()
        grade = (fields.take_text("complexity") or "").lower() or None
        if grade not in (None, "low", "medium", "high"):
            self._account.change(f"{fields.path('complexity')}: {grade!r} is not low, medium or high; {LEFT_OUT}")
            grade = None
        group = self._add(
            where,
            wanted,
            name=name,
            files_affected=fields.take_texts("files_affected", "files", "affected_files"),
            branch_name=fields.take_text("branch_name", "branch"),
            status=status,
            can_parallel=fields.take_flag("can_parallel", "parallel", "parallelizable"),
            depends_on=fields.take_texts("depends_on", "dependencies", "blocked_by"),
            complexity=grade,
            estimated_effort_minutes=fields.take_number("estimated_effort_minutes", "estimated_minutes", "effort_minutes"),
        )
        tasks = list_entries(fields.take("tasks", "task_ids"), fields.path("tasks"), self._account)
        done = fields.take_lists("completed_tasks", "done_tasks")
        fields.finish()
        return [(group, tasks, done)]

    def _read_lists(self, manager: TeamFields) -> None:
        planned = bool(self.groups)
        settled: set[str] = set()
        for status, names in _LISTS.items():
            for where, key, entry in manager.take_lists(*names):
                group = self._listed(where, key, entry, status, planned=planned)
                if group is None or group.id in settled:
                    continue
                settled.add(group.id)
                if status in ("complete", SKIPPED) and group.status != "complete":
                    if group.status is not None and group.status != status:
                        self._account.change(f"{group.where}.status: was {group.status}, is {status}: {where} has it")
                    group.status = status
                elif group.status is None:
                    group.status = status

    def _listed(self, where: str, key: str | None, entry: Any, status: str, *, planned: bool) -> ForeignGroup | None:
        """Find the group that a list names; one that is finished, or in a file without others, is a group by that."""
        name = key
        if isinstance(entry, dict):
            fields = TeamFields(entry, self._account, where)
            name = fields.take_text("id", "group_id", "group") or key or fields.take_text("name", "group_name", "title")
            fields.finish()
        elif key is None:
            name = label_of(entry)
        if name is None:
            self._account.change(f"{where}: names no group; {LEFT_OUT}")
            return None
        if (group := self.find(name)) is not None:
            return group
        if planned and status != "complete":
            self._account.change(f"{where}: {LEFT_OUT}, the plan has no group {name!r}")
            return None
        self._account.change(f"{where}: {name!r} is in no task_groups, is taken as a group")
        wanted, title = split_group(name)
        return self._add(where, wanted, name=title)

    def _name_groups(self, statuses: Mapping[str, tuple[str, Any]]) -> None:
        """Name groups by what else the files have when the plan names none."""
        if self.groups:
            return
        for name, (where, told) in statuses.items():
            if isinstance(told, dict) and not name.startswith("_"):
                self._account.change(f"{where}: is in no task_groups, is taken as a group")
                self._add(where, name)
        for name in dict.fromkeys(task.group for task in self.tasks.all.values() if task.group):
            if self.find(name) is None:
                self._account.change(f"all_tasks: the group {name!r} of tasks is in no task_groups, is taken as a group")
                self._add(f"all_tasks (group {name})", name)
        if not self.groups and self.tasks.all:
            self._account.change("task_groups: there are none; all tasks are one group, main")
            self._add("task_groups", "main").tasks = list(self.tasks.all)

    def _resolve_owners(self) -> None:
        for task in self.tasks.all.values():
            owner = self.find(task.group)
            if task.group and owner is None:
                self._account.change(f"{task.where}: there is no group {task.group!r}; {LEFT_OUT}, the task is of no group")
            task.group = owner.id if owner is not None else ""

    def _own_tasks(self) -> None:
        """Give each task to a group that lists it, and call groups done whose tasks all are."""
        for group in self.groups:
            for name in group.tasks:
                self.tasks.all[name].group = self.tasks.all[name].group or group.id
            listed = [self.tasks.all[name] for name in group.tasks]
            mine = [*listed, *(task for task in self.tasks.all.values() if task.group == group.id)]
            if group.status is None and mine and all(task.done for task in mine):
                self._account.change(f"{group.where}.status: was missing, is complete: all its tasks are")
                group.status = "complete"

    def _leave_skipped(self) -> None:
        kept = [group for group in self.groups if group.status != SKIPPED]
        for group in self.groups:
            if group.status == SKIPPED and not kept:
                self._account.change(f"{group.where}: was skipped, and so were all others; it is complete")
                group.status = "complete"
            elif group.status == SKIPPED:
                self._account.change(f"{group.where}: {LEFT_OUT}, group {group.id} was skipped")
                for task in [task for task in self.tasks.all.values() if task.group == group.id]:
                    self._account.change(f"{task.where}: {LEFT_OUT}, its group {group.id} was skipped")
                    del self.tasks.all[task.id]
                self._names = {name: found for name, found in self._names.items() if found is not group}
        self.groups = kept or self.groups
        for group in self.groups:
            group.tasks = [name for name in group.tasks if name in self.tasks.all]

    def _order(self) -> None:
        """Keep of each group's needs those that are groups, and that do not lead back to itself."""
        needs: dict[str, list[str]] = {}
        for group in self.groups:
            for name in group.depends_on:
                other = self.find(name)
                if other is None:
                    self._account.change(f"{group.where}.depends_on: there is no group {name!r}; {LEFT_OUT}")
                elif group.id in _reach(needs, other.id):
                    self._account.change(f"{group.where}.depends_on: {name!r} waits for {group.id} itself; {LEFT_OUT}")
                else:
                    needs.setdefault(group.id, []).append(other.id)
            group.depends_on = list(dict.fromkeys(needs.get(group.id, [])))


def _reach(needs: Mapping[str, Iterable[str]], start: str) -> set[str]:
    found, line = {start}, [start]
    while line:
        more = [name for name in needs.get(line.pop(), ()) if name not in found]
        found.update(more)
        line += more
    return found
