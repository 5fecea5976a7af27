"""Changes of the plan: read strictly from a report, checked against the plan as it is, and made.

Only what is not started can be changed; a completed task is history. The task that is being looked at may be described
anew. Pure data in, pure data out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.systems.phases.commands import find_command
from agent_orchestrator.systems.phases.reports import ACTIONS, ReportedChange
from agent_orchestrator.systems.phases.spec import TASK_ID, Criterion, PlanChange, PlanTask, make_criteria
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import TaskWork

CHANGES_MAX = 100


def read_changes(state: PhasesState, wanted: list[Any]) -> tuple[PlanChange, ...] | str:
    """Read the changes, or the first thing that is wrong with them."""
    if not wanted or len(wanted) > CHANGES_MAX:
        return f"the report recommends {len(wanted)} changes of the plan; at least 1 and at most {CHANGES_MAX} are taken"
    plan = dict(state.plan)
    made: list[PlanChange] = []
    for number, raw in enumerate(wanted, 1):
        try:
            one = typed.convert(raw, ReportedChange)
        except msgspec.ValidationError as error:
            return f"recommended change {number} cannot be read: {error}"
        change = _read(state, plan, one)
        if isinstance(change, str):
            return f"recommended change {number} ({one.action} {one.task}) cannot be made: {change}"
        made.append(change)
        plan = change_plan(plan, [change])
    return tuple(made)


def _read(state: PhasesState, plan: dict[str, PlanTask], one: ReportedChange) -> PlanChange | str:
    if not TASK_ID.match(one.task):
        return f"{one.task!r} is no task number"
    if one.action == "add":
        return _added(state, plan, one)
    if one.task not in plan:
        return "there is no such task"
    if one.task in state.completed:
        return "it is completed"
    work = state.works.get(one.task)
    at_work = isinstance(work, TaskWork) and work.iteration > 0  # One that is only looked at has not begun.
    if one.action == "describe":
        task = _described(plan, plan[one.task], one)
        return task if isinstance(task, str) else PlanChange(action="describe", task=one.task, made=task)
    if at_work:
        return "it is at work"
    if one.action == "remove":
        needing = [task.id for task in plan.values() if one.task in task.needs]
        return f"{', '.join(needing)} depends on it" if needing else PlanChange(action="remove", task=one.task)
    if one.action == "move":
        return _moved(plan, one)
    return f"it must be one of {', '.join(ACTIONS)}"


def _added(state: PhasesState, plan: dict[str, PlanTask], one: ReportedChange) -> PlanChange | str:
    phase = int(one.task.partition(".")[0]) - 1
    if one.task in plan or one.task in state.completed:
        return "there is such a task already"
    if not state.phase <= phase < len(state.spec.plan.phases):
        return f"phase {phase + 1} has ended or does not exist"
    if not one.name or not one.criteria:
        return "a new task needs a name and criteria"
    task = _described(plan, PlanTask(id=one.task, name=one.name), one)
    if isinstance(task, str):
        return task
    if one.before is not None and (one.before not in plan or plan[one.before].phase != phase):
        return f"there is no task {one.before} in its phase to put it before"
    return PlanChange(action="add", task=one.task, made=task, before=one.before)


def _described(plan: dict[str, PlanTask], task: PlanTask, one: ReportedChange) -> PlanTask | str:
    fields: dict[str, Any] = {}
    if one.name is not None:
        fields["name"] = one.name.strip() or task.name
    if one.description is not None:
        fields["description"] = one.description.strip()
    if one.criteria is not None:
        if not one.criteria or not all(text.strip() for text in one.criteria):
            return "a criterion needs text"
        fields["criteria"] = read_criteria(one.criteria)
    if one.needs is not None:
        order = list(plan)
        earlier = order[: order.index(task.id)] if task.id in plan else order
        wrong = [need for need in one.needs if need not in earlier]
        if wrong:
            return f"it would need {wrong[0]}, which does not come before it"
        fields["needs"] = tuple(one.needs)
    if one.files is not None:
        if any(path.startswith("/") or ".." in path.split("/") for path in one.files):
            return "a declared file leads out of the repository"
        fields["files"] = tuple(one.files)
    return msgspec.structs.replace(task, **fields)


def _moved(plan: dict[str, PlanTask], one: ReportedChange) -> PlanChange | str:
    if one.before is not None and (one.before not in plan or plan[one.before].phase != plan[one.task].phase):
        return f"there is no task {one.before} in its phase to put it before"
    change = PlanChange(action="move", task=one.task, before=one.before)
    seen: set[str] = set()
    for task in change_plan(plan, [change]).values():
        if any(need in plan and need not in seen for need in task.needs):
            return f"{task.id} would come before what it needs"
        seen.add(task.id)
    return change


def read_criteria(texts: Iterable[str]) -> tuple[Criterion, ...]:
    """Read criteria written as in a document; without a look at the machine, a code in a sentence is no command."""
    return make_criteria([(text.strip(), find_command(text.strip())) for text in texts])


def note_advice(state: PhasesState, tasks: list[str], text: str) -> tuple[PlanChange, ...]:
    """Make advice in words part of the description of each task that it is about."""
    made = []
    for task in tasks:
        before = state.plan[task]
        description = f"{before.description}\n\nChanged by the supervisor: {text}".strip()
        made.append(PlanChange(action="describe", task=task, made=msgspec.structs.replace(before, description=description)))
    return tuple(made)


def change_plan(plan: dict[str, PlanTask], changes: Iterable[PlanChange]) -> dict[str, PlanTask]:
    """Give the plan with the changes made; phases stay in order."""
    tasks = list(plan.values())
    for change in changes:
        old = next((task for task in tasks if task.id == change.task), None)
        if change.action == "describe" and old is not None and change.made is not None:
            tasks[tasks.index(old)] = change.made
            continue
        if old is not None:
            tasks.remove(old)
        task = change.made if change.action == "add" else old if change.action == "move" else None
        if task is not None:
            at = next((at for at, one in enumerate(tasks) if one.id == change.before), len(tasks))
            tasks.insert(at, task)
    ordered = sorted(tasks, key=lambda task: task.phase)
    return {task.id: task for task in ordered}


def say_change(change: PlanChange) -> str:
    """Say a change in a line, for people."""
    name = f" ({change.made.name})" if change.made is not None else ""
    where = f" before {change.before}" if change.before is not None else ""
    return f"{change.action} {change.task}{name}{where}"
