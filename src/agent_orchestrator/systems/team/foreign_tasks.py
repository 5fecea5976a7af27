"""The tasks of a foreign `pm_state.json`: in `all_tasks`, in lists of what is done, and in the groups themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.values import label_of
from agent_orchestrator.systems.team.fields import LEFT_OUT, Listed, TeamFields, list_entries
from agent_orchestrator.systems.team.spellings import fold, read_status, split_task

_LISTS = {
    True: ("completed_tasks", "done_tasks", "finished_tasks"),
    False: ("pending_tasks", "remaining_tasks", "in_progress_tasks", "active_tasks"),
}


class ForeignTask(msgspec.Struct, kw_only=True):
    """A task as the file has it, with the path at which it stands there."""

    where: str
    id: str
    description: str = ""
    group: str = ""
    status: str | None = None

    @property
    def done(self) -> bool:
        """Say that nothing is left of it."""
        return self.status == "complete"


class ForeignTasks:
    """All tasks of a file, by id."""

    def __init__(self, account: FieldAccount) -> None:
        """Begin without tasks; what is changed goes to the account."""
        self.all: dict[str, ForeignTask] = {}
        self._account = account

    def read_all(self, manager: TeamFields) -> None:
        """Read the tasks that stand beside the groups."""
        given = manager.take("all_tasks", "tasks")
        for where, key, entry in list_entries(given, manager.path("all_tasks"), self._account):
            task = self._read(where, key, entry)
            if task is None:
                continue
            known = self.all.get(task.id)
            if known is not None and fold(known.description) == fold(task.description):
                self._account.change(f"{where}: {LEFT_OUT}, {task.id!r} is there twice")
                known.status = "complete" if task.done else known.status
            else:
                self._add(task)
        for done, names in _LISTS.items():
            self.mark(manager.take_lists(*names), done=done)

    def read_group(self, group: str, listed: list[Listed], done: list[Listed]) -> list[str]:
        """Read the tasks of a group; give their ids."""
        found = []
        for path, key, entry in listed:
            task = self._read(path, key, entry)
            if task is not None:
                found.append(self._own(task, group))
        return [*found, *(name for name in self.mark(done, done=True) if name not in found)]

    def mark(self, listed: list[Listed], *, done: bool) -> list[str]:
        """Mark the tasks that a list names; one that is nowhere else is a task by that."""
        marked = []
        for path, key, entry in listed:
            task = self._read(path, key, entry)
            if task is None:
                continue
            known = self._find(task) or self._add(task)
            known.status = "complete" if done or task.done else known.status
            marked.append(known.id)
        return marked

    def _own(self, task: ForeignTask, group: str) -> str:
        known = self._find(task)
        if known is None:
            task.group = group
            return self._add(task).id
        if known.group not in ("", group) and task.description and fold(task.description) != fold(known.description):
            task.group = group
            return self._add(task).id
        known.description = known.description or task.description
        known.group = known.group or group
        known.status = "complete" if task.done else known.status or task.status
        return known.id

    def _find(self, task: ForeignTask) -> ForeignTask | None:
        """Find the task of an id, or of a text that stands alone."""
        if task.id in self.all or task.description:
            return self.all.get(task.id)
        text = fold(task.id)
        return next((one for one in self.all.values() if text and text in (fold(one.description), fold(one.id))), None)

    def _add(self, task: ForeignTask) -> ForeignTask:
        wanted, number = task.id, 1
        while task.id in self.all:
            number += 1
            task.id = f"{wanted}-{number}"
        if task.id != wanted:
            self._account.change(f"{task.where}: {wanted!r} is another task already; it is {task.id}")
        self.all[task.id] = task
        return task

    def _read(self, where: str, key: str | None, entry: Any) -> ForeignTask | None:
        if isinstance(entry, dict):
            return self._read_object(where, key, TeamFields(entry, self._account, where))
        if key is not None and (entry is None or isinstance(entry, bool)):
            return ForeignTask(where=where, id=key, status="complete" if entry else None)
        text = label_of(entry)
        if text is None:
            self._account.change(f"{where}: is no task; {LEFT_OUT}")
            return None
        if key is not None:
            status = read_status(text)
            return ForeignTask(where=where, id=key, status=status, description="" if status else text)
        name, description, done = split_task(text)
        return ForeignTask(where=where, id=name, description=description, status="complete" if done else None)

    def _read_object(self, where: str, key: str | None, fields: TeamFields) -> ForeignTask | None:
        description = fields.take_text("description", "title", "name", "task", "summary") or ""
        name = fields.take_text("id", "task_id") or key
        if name is None and description:
            name, description, _ = split_task(description)
        status = fields.take_status()
        group = fields.take_text("group_id", "group", "task_group") or ""
        fields.finish()
        if name is None:
            self._account.change(f"{where}: has neither an id nor a description; {LEFT_OUT}")
            return None
        return ForeignTask(where=where, id=name, description=description, group=group, status=status)
