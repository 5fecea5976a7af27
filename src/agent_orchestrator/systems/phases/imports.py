"""A state file without a journal: what of it is taken over, sloppy ones included, and what had to be changed.

The task document says what is to be done; the file says what was. Whatever was at work there begins anew here.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.foreign import read_entries, read_part, read_time_us
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidDocument, InvalidValue
from agent_orchestrator.systems.phases.bounds import budget_of, change_bounds, read_money_usd, read_time_s
from agent_orchestrator.systems.phases.decide.edits import OLD_FORMAT, is_old_format, plan_changes
from agent_orchestrator.systems.phases.documents import PendingTask
from agent_orchestrator.systems.phases.events import BoundsChanged, Imported, ListsEdited, PhasesEvent
from agent_orchestrator.systems.phases.evolve import evolve
from agent_orchestrator.systems.phases.spec import TASK_ID, Lesson, PhasesSpec
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
    Intervention: {"timestamp": UNKNOWN, "conflict_type": UNKNOWN, "severity": UNKNOWN, "resolution": ""},
}
"""The values for fields that the file does not have."""
Entry = TypeVar("Entry")


class ImportedPhases(msgspec.Struct, frozen=True, kw_only=True):
    """A run made of a foreign state file: what it is asked to do, its facts after those of `begin`, what was changed."""

    spec: PhasesSpec
    facts: tuple[PhasesEvent, ...]
    notes: tuple[str, ...]
    budget: Budget
    cost_usd: float | None
    """The money spent elsewhere."""


def import_state(document: object, path: str, spec: PhasesSpec, context: Context, start: str) -> ImportedPhases:
    """Read an agent-state.json as far as it can be used; the run goes on from the commit `start`."""
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what="state file", detail="it is not a JSON object")
    if is_old_format(document):
        raise InvalidDocument(path=path, what="state file", detail=OLD_FORMAT)
    if not isinstance(document.get("orchestrator"), dict):
        raise InvalidDocument(path=path, what="state file", detail="it has no orchestrator; it is no state of phases")
    return _import(document, spec, context, start)


def _import(document: dict[str, Any], spec: PhasesSpec, context: Context, start: str) -> ImportedPhases:
    notes: list[str] = []
    head = document["orchestrator"]
    if head.get("task_doc") != spec.document:
        notes.append(f"orchestrator.task_doc: was {head.get('task_doc')!r}, is {spec.document}")
    supervisor = _supervisor(read_part(document, "supervisor", dict, notes), spec, notes)
    supervision = msgspec.structs.replace(spec.plan.supervision, enabled=supervisor.enabled)
    spec = msgspec.structs.replace(spec, plan=msgspec.structs.replace(spec.plan, supervision=supervision))
    completed = _completed(document, spec, notes)
    pending = _entries(document, "pending_tasks", PendingTask, notes)
    bounds = read_part(document, "safety_bounds", dict, notes)
    cost_usd, unmetered = _spent(bounds.get("cost_so_far"), notes)
    checkpoints, milestones = _marks(document, pending, notes)
    stage, stands = _standing(head.get("status"), bool(completed), notes)
    warnings = bounds.get("warnings")
    fact = Imported(
        stage=stage,
        started_us=read_time_us(head.get("start_time"), "orchestrator.start_time", notes),
        ended_us=read_time_us(head.get("end_time"), "orchestrator.end_time", notes) if isinstance(stands, Ended) else None,
        start=start,
        completed=tuple(msgspec.to_builtins(one) for one in completed),
        supervisor=msgspec.to_builtins(supervisor),
        learnings=tuple(msgspec.to_builtins(one) for one in _entries(document, "learnings", Lesson, notes)),
        milestones=tuple(msgspec.to_builtins(one) for one in milestones),
        checkpoints=tuple(msgspec.to_builtins(one) for one in checkpoints),
        warnings=tuple(one for one in warnings if isinstance(one, str)) if isinstance(warnings, list) else (),
        cost_usd=cost_usd,
        unmetered=unmetered,
        elapsed_s=_elapsed_s(bounds.get("elapsed_time"), notes),
    )
    lists = _lists(spec, context, fact, pending, notes)
    _drop_agents(document, {one.task for one in completed}, notes)
    changes = _bounds(bounds, spec, notes)
    bounded: list[PhasesEvent] = [BoundsChanged(changes=changes)] if changes else []
    budget = budget_of(change_bounds(spec.plan.bounds, changes))
    facts = (fact, *lists, *bounded, stands)
    return ImportedPhases(spec=spec, facts=facts, notes=tuple(notes), budget=budget, cost_usd=cost_usd)


def _entries(document: dict[str, Any], name: str, kind: type[Entry], notes: list[str]) -> list[Entry]:
    return read_entries(read_part(document, name, list, notes), name, kind, _BLANKS[kind], notes)


def _supervisor(given: dict[str, Any], spec: PhasesSpec, notes: list[str]) -> Supervisor:
    enabled = given.get("enabled")
    made = Supervisor.fresh(enabled=enabled if isinstance(enabled, bool) else spec.plan.supervision.enabled)
    for name in ("checks_performed", "conflicts_detected", "auto_fixes_applied", "re_plans_triggered"):
        try:
            setattr(made, name, read_count(given.get(name, 0), name, 0))
        except InvalidValue:
            notes.append(f"supervisor.{name}: was {given[name]!r}, is 0")
    if read_time_us(given.get("last_check"), "supervisor.last_check", notes) is not None:
        made.last_check = given["last_check"]
    listed = read_part(given, "interventions", list, notes)
    made.interventions = read_entries(listed, "supervisor.interventions", Intervention, _BLANKS[Intervention], notes)
    return made


def _completed(document: dict[str, Any], spec: PhasesSpec, notes: list[str]) -> list[CompletedTask]:
    known = {task.id for task in spec.plan.tasks}
    found: dict[str, CompletedTask] = {}
    for entry in _entries(document, "completed_tasks", CompletedTask, notes):
        if entry.task not in known:
            notes.append(f"completed_tasks: {entry.task} is left out, the task document has no such task")
        elif entry.task in found:
            notes.append(f"completed_tasks: {entry.task} stands twice; the first one is used")
        else:
            found[entry.task] = entry
    return list(found.values())


def _lists(spec: PhasesSpec, context: Context, fact: Imported, pending: list[PendingTask], notes: list[str]) -> list[PhasesEvent]:
    """Give names, additions and the order of what is left as changes of the document's plan."""
    state = PhasesState(spec, context)
    evolve(state, fact, context.created_us)
    wanted: dict[str, str] = {}
    for entry in pending:
        match = TASK_ID.match(entry.task)
        if match is None or not 1 <= int(match[1]) <= len(spec.plan.phases):
            notes.append(f"pending_tasks: {entry.task!r} is left out, it is no task of a phase of the task document")
        elif entry.task in state.completed:
            notes.append(f"pending_tasks: {entry.task} is left out, it is completed")
        else:
            known = state.plan.get(entry.task)
            wanted.setdefault(entry.task, entry.name or (known.name if known is not None else entry.task))
    notes += [f"pending_tasks: {task} is new, from the task document" for task in state.plan if _is_new(state, wanted, task)]
    changes = plan_changes(state, wanted)
    if isinstance(changes, str):
        notes.append(f"{changes}; the order of the task document is used")
        return []
    return [ListsEdited(changes=changes)] if changes else []


def _is_new(state: PhasesState, wanted: dict[str, str], task: str) -> bool:
    return task not in wanted and task not in state.completed


def _drop_agents(document: dict[str, Any], completed: set[str], notes: list[str]) -> None:
    for agent in read_part(document, "active_agents", list, notes):
        named = agent if isinstance(agent, dict) else {}
        task, kind = str(named.get("task")), str(named.get("type"))
        what = "" if task in completed else f"; task {task} begins anew"
        notes.append(f"active_agents: {kind} of task {task} does not work here{what}")


def _marks(
    document: dict[str, Any], pending: list[PendingTask], notes: list[str]
) -> tuple[list[CheckpointEntry], list[Milestone]]:
    """Read checkpoints and milestones, their phases counted from 0; the task id decides, where there is one."""
    made = []
    for one in _entries(document, "checkpoints", CheckpointEntry, notes):
        if _SNAPSHOT.match(one.state_snapshot) and TASK_ID.match(one.task):
            made.append(one)
        else:
            notes.append(f"checkpoints: {one.state_snapshot!r} of task {one.task!r} is left out, it is no checkpoint")
    milestones = _entries(document, "milestones", Milestone, notes)
    named = [(one.task, one.phase) for one in made]
    named += [(one.task, one.phase) for one in pending if TASK_ID.match(one.task)]
    if not any(phase == _phase(task) + 1 for task, phase in named):
        return made, milestones
    notes.append("phase: pending_tasks, milestones and checkpoints are counted from 0, as task ids say; they were from 1")
    made = [msgspec.structs.replace(one, phase=_phase(one.task)) for one in made]
    return made, [msgspec.structs.replace(one, phase=max(0, one.phase - 1)) for one in milestones]


def _phase(task: str) -> int:
    return int(task.partition(".")[0]) - 1


def _bounds(given: dict[str, Any], spec: PhasesSpec, notes: list[str]) -> dict[str, Any]:
    """Read the file's bounds, and the task document's for those that it does not have."""
    names = {"max_iterations_per_task": "max_iterations", "max_cost": "max_cost", "max_time": "max_time"}
    bounds = spec.plan.bounds
    changes: dict[str, Any] = {}
    for name, ours in names.items():
        if given.get(name) is None:
            notes.append(f"safety_bounds.{name}: was missing, is {getattr(bounds, ours)} as in the task document")
            continue
        try:
            change_bounds(bounds, {ours: given[name]})
        except InvalidValue as error:
            told = str(error).rstrip(".")
            notes.append(f"safety_bounds.{name}: {told}; it is {getattr(bounds, ours)} as in the task document")
        else:
            changes[ours] = given[name]
    return changes


def _spent(given: object, notes: list[str]) -> tuple[float | None, bool]:
    """Read dollars, and whether there may be more that nobody knows of."""
    if given is None or given == UNKNOWN:
        return None, given == UNKNOWN
    text = str(given)
    amount = text.removeprefix(">=")
    if re.fullmatch(r"\$?0*(?:\.0*)?", amount.strip()):
        return None, text != amount
    try:
        return read_money_usd(amount, "cost_so_far"), text != amount
    except InvalidValue as error:
        notes.append(f"safety_bounds.cost_so_far: {str(error).rstrip('.')}; it is unknown")
        return None, True


def _elapsed_s(given: object, notes: list[str]) -> float:
    if given is None or re.fullmatch(r"(?:0+[hms]?\s*)+", str(given)):
        return 0.0
    try:
        return read_time_s(given, "elapsed_time") or 0.0
    except InvalidValue as error:
        notes.append(f"safety_bounds.elapsed_time: {str(error).rstrip('.')}; it is 0")
        return 0.0


def _standing(status: object, begun: bool, notes: list[str]) -> tuple[PhasesStatus, PhasesEvent]:
    """Say where the run stands: a review is begun again, and what failed may be tried again."""
    if status == PhasesStatus.COMPLETED:
        return PhasesStatus.REVIEWING, Ended(stop=StopReason.COMPLETED, detail="imported")
    if status == PhasesStatus.PLANNING and not begun:
        return PhasesStatus.PLANNING, Paused(reason="imported")
    if status != PhasesStatus.EXECUTING:
        notes.append(f"orchestrator.status: was {status}, is executing")
    return PhasesStatus.EXECUTING, Paused(reason="imported")
