"""A state file without a journal: what of it is taken over, in any spelling, and the account of its fields.

The task document says what is to be done; the file says what was. Whatever was at work there begins anew here; what was done
stays done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields
from agent_orchestrator.core.foreign.records import Readers, read_record, read_time_us
from agent_orchestrator.core.foreign.values import any_of, count_of, flag_of, is_done, label_of, number_of, say, time_of
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import InvalidDocument, InvalidValue
from agent_orchestrator.systems.phases import spellings
from agent_orchestrator.systems.phases.bounds import budget_of, change_bounds, read_money_usd, read_time_s
from agent_orchestrator.systems.phases.decide.edits import OLD_FORMAT, is_old_format, plan_changes
from agent_orchestrator.systems.phases.documents import PendingTask
from agent_orchestrator.systems.phases.events import BoundsChanged, Imported, ListsEdited, PhasesEvent
from agent_orchestrator.systems.phases.evolve import evolve
from agent_orchestrator.systems.phases.spec import TASK_ID, Lesson, PhasesSpec, slug_of
from agent_orchestrator.systems.phases.state import (
    CheckpointEntry,
    CompletedTask,
    Intervention,
    Milestone,
    PhasesState,
    PhasesStatus,
    Supervisor,
)

UNKNOWN = "unknown"
_SNAPSHOT = re.compile(r"checkpoint-\d{1,6}\.json\Z")
_BLANKS: dict[type, dict[str, Any]] = {
    CompletedTask: {
        "name": UNKNOWN,
        "completed": UNKNOWN,
        "iterations": 1,
        "time_elapsed": UNKNOWN,
        "cost": UNKNOWN,
        "files_modified": [],
        "success_criteria_met": {},
    },
    PendingTask: {"phase": 0, "name": ""},
    Lesson: {"timestamp": UNKNOWN, "task": "", "iteration": 0, "type": "insight", "pattern": "", "context": ""},
    Milestone: {"phase": 0, "completed": UNKNOWN, "issue_url": ""},
    CheckpointEntry: {"timestamp": UNKNOWN, "phase": 0},
    Intervention: {
        "timestamp": UNKNOWN,
        "check_type": UNKNOWN,
        "task": "",
        "conflict_type": UNKNOWN,
        "severity": UNKNOWN,
        "action": UNKNOWN,
        "resolution": "",
    },
}
"""The values for fields that the file does not have."""
_READERS: dict[type, Readers] = {
    CompletedTask: spellings.COMPLETED,
    PendingTask: spellings.PENDING,
    Lesson: spellings.LESSON,
    Milestone: spellings.MILESTONE,
    CheckpointEntry: spellings.CHECKPOINT,
    Intervention: spellings.INTERVENTION,
}
_TEXTS: dict[type, str] = {CompletedTask: "task", PendingTask: "task", Lesson: "lesson"}
"""The field that an entry is which is only a text."""
Entry = TypeVar("Entry", bound=msgspec.Struct)


class ImportedPhases(msgspec.Struct, frozen=True, kw_only=True):
    """A run made of a foreign state file: what it is asked to do, its facts after those of `begin`, and the account."""

    spec: PhasesSpec
    facts: tuple[PhasesEvent, ...]
    account: FieldAccount
    budget: Budget
    cost_usd: float | None
    """The money spent elsewhere."""


def import_state(document: object, path: str, spec: PhasesSpec, context: Context, start: str) -> ImportedPhases:
    """Read an agent-state.json as far as it can be used; the run goes on from the commit `start`."""
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what="state file", detail="it is not a JSON object")
    if is_old_format(document):
        raise InvalidDocument(path=path, what="state file", detail=OLD_FORMAT)
    account = FieldAccount()
    nested = isinstance(document.get("orchestrator"), dict)
    top = ForeignFields(document, account, names=spellings.TOP if nested else spellings.FLAT)
    listed = ("completed_tasks", "pending_tasks", "tasks")
    if not nested and not any(value for _, value in ForeignFields(document, account, names=spellings.TOP).spellings(*listed)):
        has = f"it has {', '.join(list(document)[:8])}" if document else "it is empty"
        detail = f"it has no orchestrator and lists no tasks; it is no state of phases ({has})"
        raise InvalidDocument(path=path, what="state file", detail=detail)
    head = top.one("orchestrator", names=spellings.HEAD) if nested and document["orchestrator"] else None
    return _Import(top, head or top, spec, account).make(context, start)


class _Import:
    """One state file on its way to a run: its top, and the part that is about the run as a whole."""

    def __init__(self, top: ForeignFields, head: ForeignFields, spec: PhasesSpec, account: FieldAccount) -> None:
        self.top, self.head, self.spec, self.account = top, head, spec, account

    def make(self, context: Context, start: str) -> ImportedPhases:
        """Read everything, and make the facts of it."""
        account, head = self.account, self.head
        given = head.read("task_doc", label_of)
        if given != self.spec.document:
            account.change(f"{head.path('task_doc')}: was {given!r}, is {self.spec.document}")
        supervisor = self._read_supervisor()
        supervision = msgspec.structs.replace(self.spec.plan.supervision, enabled=supervisor.enabled)
        plan = msgspec.structs.replace(self.spec.plan, supervision=supervision)
        self.spec = msgspec.structs.replace(self.spec, plan=plan)
        done, left = self._read_tasks()
        completed = self._completed(done)
        waiting = [(place, one) for place, entry in left if (one := self._record(entry, place, PendingTask)) is not None]
        pending = [one for _, one in waiting]
        bounds = self._read_bounds()
        checkpoints, milestones = self._marks(pending)
        stage, stands = self._standing(bool(completed))
        fact = Imported(
            stage=stage,
            started_us=self._time(head, "start_time"),
            ended_us=self._time(head, "end_time", wanted=isinstance(stands, Ended)),
            start=start,
            completed=tuple(msgspec.to_builtins(one) for one in completed),
            supervisor=msgspec.to_builtins(supervisor),
            learnings=tuple(msgspec.to_builtins(one) for one in self._entries("learnings", Lesson)),
            milestones=tuple(msgspec.to_builtins(one) for one in milestones),
            checkpoints=tuple(msgspec.to_builtins(one) for one in checkpoints),
            warnings=bounds["warnings"],
            cost_usd=bounds["cost_usd"],
            unmetered=bounds["unmetered"],
            elapsed_s=bounds["elapsed_s"],
        )
        lists = self._lists(context, fact, waiting)
        self._drop_agents({one.task for one in completed})
        changed: list[PhasesEvent] = [BoundsChanged(changes=bounds["changes"])] if bounds["changes"] else []
        for fields in {id(head): head, id(self.top): self.top}.values():
            fields.ignore("counted anew", *spellings.COUNTED)
            fields.leave_rest()
        return ImportedPhases(
            spec=self.spec,
            facts=(fact, *lists, *changed, stands),
            account=account,
            budget=budget_of(change_bounds(self.spec.plan.bounds, bounds["changes"])),
            cost_usd=bounds["cost_usd"],
        )

    def _time(self, fields: ForeignFields, name: str, *, wanted: bool = True) -> int | None:
        given = fields.read(name, any_of)
        if given is None:
            return None
        if not wanted:
            self.account.leave(f"{fields.path(name)} (the run has not ended)")
            return None
        return read_time_us(time_of(given) or given, fields.path(name), self.account)

    def _record(self, given: object, where: str, kind: type[Entry]) -> Entry | None:
        if not (isinstance(given, str) and given.strip() and kind in _TEXTS):
            return read_record(given, where, kind, self.account, _BLANKS[kind], _READERS[kind])
        whole = {_TEXTS[kind]: given} if kind is Lesson else self._named(given)
        self.account.take(where)
        return read_record(whole, where, kind, FieldAccount(), _BLANKS[kind], _READERS[kind])

    def _listed(self, fields: ForeignFields, name: str) -> Iterator[tuple[str, Any]]:
        """Give the entries of a list with their paths, those of a map as well; anything else is left out."""
        for key, value in fields.spellings(name):
            place = fields.place(key)
            if value in (None, "", [], {}):
                self.account.take(place)
            elif isinstance(value, list):
                yield from ((f"{place}[{number}]", entry) for number, entry in enumerate(value))
            elif isinstance(value, dict):
                yield from ((f"{place}.{inner}", _keyed(inner, entry)) for inner, entry in value.items())
            else:
                self.account.change(f"{place}: {say(value)} is not a list; left out")

    def _entries(self, name: str, kind: type[Entry], fields: ForeignFields | None = None) -> list[Entry]:
        listed = self._listed(fields or self.top, name)
        return [one for place, entry in listed if (one := self._record(entry, place, kind)) is not None]

    def _read_supervisor(self) -> Supervisor:
        made = Supervisor.fresh(enabled=self.spec.plan.supervision.enabled)
        for given in self.top.within("supervisor", {}):
            enabled = given.read("enabled", flag_of)
            made.enabled = made.enabled if enabled is None else enabled
            for name in ("checks_performed", "conflicts_detected", "auto_fixes_applied", "re_plans_triggered"):
                setattr(made, name, given.read(name, count_of) or 0)
            made.last_check = given.read("last_check", time_of)
            made.interventions = self._entries("interventions", Intervention, given)
            given.leave_rest()
        return made

    def _read_tasks(self) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
        """Give the entries about tasks that are done, and about those that are not, each with its place."""
        done, left = list(self._listed(self.top, "completed_tasks")), list(self._listed(self.top, "pending_tasks"))
        for place, entry in self._listed(self.top, "tasks"):
            status = entry.get("status", entry.get("completed")) if isinstance(entry, dict) else entry
            marked = isinstance(entry, str) and is_done(entry.strip()[:1])
            (done if marked or (isinstance(entry, dict) and is_done(status)) else left).append((place, entry))
        return done, left

    def _named(self, entry: str) -> dict[str, str]:
        """Give an entry that is only a text the number of its task, by the text or else by the name that the document has."""
        task, name = spellings.split_task(entry)
        known = next((one.id for one in self.spec.plan.tasks if slug_of(one.name) == slug_of(name)), "")
        return {"task": task or known or name, **({"name": name} if name else {})}

    def _completed(self, done: list[tuple[str, Any]]) -> list[CompletedTask]:
        known = {task.id for task in self.spec.plan.tasks}
        found: dict[str, CompletedTask] = {}
        for place, entry in done:
            one = self._record(entry, place, CompletedTask)
            if one is None:
                continue
            task = spellings.split_task(one.task)[0] or one.task
            if task not in known:
                named = f" ({say(one.name)})" if one.name not in (UNKNOWN, task) else ""
                self.account.leave(f"{place}: {task}{named} is done; the task document has no such task")
            elif task in found:
                self.account.leave(f"{place}: {task} stands twice; the first one is used")
            else:
                found[task] = msgspec.structs.replace(one, task=task)
        return list(found.values())

    def _lists(self, context: Context, fact: Imported, waiting: list[tuple[str, PendingTask]]) -> list[PhasesEvent]:
        """Give names, additions and the order of what is left as changes of the document's plan."""
        state, account = PhasesState(self.spec, context), self.account
        evolve(state, fact, context.created_us)
        wanted: dict[str, str] = {}
        for place, entry in waiting:
            task = spellings.split_task(entry.task)[0] or entry.task
            match = TASK_ID.match(task)
            if match is None or not 1 <= int(match[1]) <= len(self.spec.plan.phases):
                account.leave(f"{place}: {entry.task!r} is no task of a phase of the task document")
            elif task in state.completed:
                account.leave(f"{place}: {task} is completed")
            else:
                known = state.plan.get(task)
                wanted.setdefault(task, entry.name or (known.name if known is not None else task))
        new = [task for task in state.plan if task not in wanted and task not in state.completed]
        account.change_all(f"pending_tasks: {task} is new, from the task document" for task in new)
        changes = plan_changes(state, wanted)
        if isinstance(changes, str):
            account.change(f"{changes}; the order of the task document is used")
            return []
        return [ListsEdited(changes=changes)] if changes else []

    def _drop_agents(self, completed: set[str]) -> None:
        for place, agent in self._listed(self.top, "active_agents"):
            named = agent if isinstance(agent, dict) else {}
            task, kind = str(named.get("task")), str(named.get("type"))
            what = "" if task in completed else f"; task {task} begins anew"
            told = f"{kind} of task {task}" if named else say(agent)
            self.account.change(f"{place.partition('[')[0]}: {told} does not work here{what}")

    def _marks(self, pending: list[PendingTask]) -> tuple[list[CheckpointEntry], list[Milestone]]:
        """Read checkpoints and milestones, their phases counted from 0; the task id decides, where there is one."""
        made = []
        for one in self._entries("checkpoints", CheckpointEntry):
            if _SNAPSHOT.match(one.state_snapshot) and TASK_ID.match(one.task):
                made.append(one)
            else:
                self.account.leave(f"checkpoints: {one.state_snapshot!r} of task {one.task!r}, it is no checkpoint")
        milestones = self._entries("milestones", Milestone)
        named = [(one.task, one.phase) for one in made]
        named += [(one.task, one.phase) for one in pending if TASK_ID.match(one.task)]
        if not any(phase == _phase(task) + 1 for task, phase in named):
            return made, milestones
        told = "pending_tasks, milestones and checkpoints are counted from 0, as task ids say; they were from 1"
        self.account.change(f"phase: {told}")
        made = [msgspec.structs.replace(one, phase=_phase(one.task)) for one in made]
        return made, [msgspec.structs.replace(one, phase=max(0, one.phase - 1)) for one in milestones]

    def _read_bounds(self) -> dict[str, Any]:
        """Read the file's bounds, and the task document's for those that it does not have; and what was spent."""
        flat = not self.top.has("safety_bounds")
        parts = [ForeignFields({}, self.account)] if flat else self.top.within("safety_bounds", spellings.BOUNDS)
        (given, *_) = parts or [ForeignFields({}, self.account)]
        if flat and self.head is self.top:
            given = self.top.under(spellings.BOUNDS)
        changes = self._limits(given)
        cost_usd, unmetered = self._spent(given)
        elapsed = given.read("elapsed_time", any_of)
        warnings = given.read("warnings", lambda value: value if isinstance(value, list) else None) or []
        for number, one in enumerate(warnings):
            if not isinstance(one, str):
                self.account.leave(f"{given.path('warnings')}[{number}] ({say(one)} is not a text)")
        if given is not self.top and not (flat and self.head is self.top):
            given.leave_rest()
        return {
            "changes": changes,
            "cost_usd": cost_usd,
            "unmetered": unmetered,
            "elapsed_s": self._elapsed_s(elapsed, given.path("elapsed_time")),
            "warnings": tuple(one for one in warnings if isinstance(one, str)),
        }

    def _limits(self, given: ForeignFields) -> dict[str, Any]:
        bounds, changes = self.spec.plan.bounds, {}
        hours, minutes = given.read("max_time_hours", number_of), given.read("max_time_minutes", number_of)
        for name in ("max_iterations", "max_cost", "max_time"):
            value = given.read(name, any_of)
            if name == "max_time" and value is None:
                value = f"{hours:g}h" if hours else f"{minutes:g}m" if minutes else None
            if name == "max_cost" and number_of(value) is not None:
                value = f"${number_of(value):g}"
            if value is None:
                said = given.path("max_iterations_per_task" if name == "max_iterations" else name)
                self.account.change(f"{said}: was missing, is {getattr(bounds, name)} as in the task document")
                continue
            try:
                change_bounds(bounds, {name: value})
            except InvalidValue as error:
                told = str(error).rstrip(".")
                self.account.change(f"{given.path(name)}: {told}; it is {getattr(bounds, name)} as in the task document")
            else:
                changes[name] = value
        return changes

    def _spent(self, fields: ForeignFields) -> tuple[float | None, bool]:
        """Read dollars, and whether there may be more that nobody knows of."""
        given = fields.read("cost_so_far", any_of)
        if given is None or given == UNKNOWN:
            return None, given == UNKNOWN
        text = str(given)
        amount = text.removeprefix(">=")
        if re.fullmatch(r"\$?0*(?:\.0*)?", amount.strip()):
            return None, text != amount
        try:
            return read_money_usd(amount, "cost_so_far"), text != amount
        except InvalidValue as error:
            self.account.change(f"{fields.path('cost_so_far')}: {str(error).rstrip('.')}; it is unknown")
            return None, True

    def _elapsed_s(self, given: object, path: str) -> float:
        if given is None or re.fullmatch(r"(?:0+[hms]?\s*)+", str(given)):
            return 0.0
        try:
            return read_time_s(given, "elapsed_time") or 0.0
        except InvalidValue as error:
            self.account.change(f"{path}: {str(error).rstrip('.')}; it is 0")
            return 0.0

    def _standing(self, begun: bool) -> tuple[PhasesStatus, PhasesEvent]:
        """Say where the run stands: a review is begun again, and what failed may be tried again."""
        status = self.head.read("status", spellings.read_stage, wrong="is no known status")
        if status is PhasesStatus.COMPLETED:
            return PhasesStatus.REVIEWING, Ended(stop=StopReason.COMPLETED, detail="imported")
        if status is PhasesStatus.PLANNING and not begun:
            return PhasesStatus.PLANNING, Paused(reason="imported")
        if status is not PhasesStatus.EXECUTING:
            self.account.change(f"{self.head.path('status')}: was {status}, is executing")
        return PhasesStatus.EXECUTING, Paused(reason="imported")


def _keyed(key: str, entry: object) -> object:
    """Give an entry of a map with its key as its task."""
    if isinstance(entry, dict):
        return {"task": key, **entry}
    return {"task": key, **({"name": entry} if isinstance(entry, str) else {})}


def _phase(task: str) -> int:
    return int(task.partition(".")[0]) - 1
