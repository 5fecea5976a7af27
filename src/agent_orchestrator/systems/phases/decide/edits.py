"""Adopts a state file that a person edited, after reading it with every fault it has.

Task lists, bounds and agents taken out of `active_agents` are adopted; a checkpoint copied over it takes the run back to that
checkpoint; everything derived is recomputed. What the seed's own example has is accepted: phases counted from 1 and ids that
are no hashes. The task id decides.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.events import EditRefused, LimitsSet, Paused
from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.bounds import read_money_usd, read_time_s, show_cost, show_time
from agent_orchestrator.systems.phases.changes import change_plan, read_criteria
from agent_orchestrator.systems.phases.documents import (
    STATE_FILE,
    AgentStateDocument,
    SafetyBounds,
    active_agent,
    checkpoint_name,
    state_document,
)
from agent_orchestrator.systems.phases.events import AgentsDropped, BoundsChanged, ListsEdited, PhasesEvent, Rewound
from agent_orchestrator.systems.phases.spec import TASK_ID, PlanChange, PlanTask
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import TaskWork, task_of

OLD_FORMAT = (
    "Migration not automatic: this is the old format (status, current_step, total_steps); "
    "old workflows must complete under the old system, new workflows use the new state format"
)


def adopt_edit(state: PhasesState, edit: Edited, now_us: int) -> list[PhasesEvent]:
    """Adopt what a person changed, or refuse the edit with all its faults; other files are derived."""
    if not edit.path.endswith(f"/{STATE_FILE}"):
        return []
    read = read_state_document(edit.document)
    if isinstance(read, list):
        return [EditRefused(problems=tuple(read))]
    now = msgspec.json.decode(msgspec.json.encode(state_document(state)))
    if edit.document == now:
        return []
    for number, snapshot in state.snapshots.items():
        if not state.archived and msgspec.to_builtins(snapshot.body) == edit.document:
            why = f"{checkpoint_name(number)} was copied over the state file"
            return [Rewound(to=number, why=why), *([Paused(reason=why)] if state.lifecycle.ended else [])]
    if state.lifecycle.ended:
        return [EditRefused(problems=("the run has ended; only a checkpoint can be copied over its state file",))]
    changes = _lists(state, read)
    if isinstance(changes, str):
        return [EditRefused(problems=(changes,))]
    return [*_bounds(state, read), *changes, *_agents(state, read)]


def _bounds(state: PhasesState, read: AgentStateDocument) -> list[PhasesEvent]:
    given, budget = read.safety_bounds, state.doing.budget
    changes: dict[str, Any] = {}
    if given.max_iterations_per_task != state.bounds.max_iterations:
        changes["max_iterations"] = given.max_iterations_per_task
    if given.max_cost != show_cost(state.bounds, budget.run.cost_usd):
        changes["max_cost"] = given.max_cost
    if given.max_time != show_time(state.bounds, budget.run.wall_s):
        changes["max_time"] = given.max_time
    events: list[PhasesEvent] = [BoundsChanged(changes=changes)] if changes else []
    if "max_cost" in changes or "max_time" in changes:
        run = msgspec.structs.replace(
            budget.run,
            cost_usd=read_money_usd(given.max_cost, "max_cost"),
            wall_s=read_time_s(given.max_time, "max_time"),
        )
        events.append(LimitsSet(limits=msgspec.structs.replace(budget, run=run)))
    return events


def _lists(state: PhasesState, read: AgentStateDocument) -> list[PhasesEvent] | str:
    done = {entry.task: entry for entry in read.completed_tasks}
    wanted = {entry.task: entry for entry in read.pending_tasks}
    unknown = [task for task in done if task not in state.plan]
    if unknown:
        return f"completed_tasks: there is no task {unknown[0]!r}"
    if judged := [task for task in done if task not in state.completed and _is_judged(state, task)]:
        ways = f"resume the run, or leave it out by `orc phases skip {state.context.run} {judged[0]}`"
        return f"completed_tasks: an edit cannot complete task {judged[0]}: its criteria and the supervisor decide; {ways}"
    changes = plan_changes(state, {task: entry.name for task, entry in wanted.items()})
    if isinstance(changes, str):
        return changes
    new = tuple(msgspec.to_builtins(entry) for task, entry in done.items() if task not in state.completed)
    undone = tuple(task for task in state.completed if task not in done)
    gone = tuple(task.id for task in state.pending() if task.id not in wanted and task.id not in done)
    if not (changes or new or undone or gone):
        return []
    return [ListsEdited(changes=changes, done=new, undone=undone, skipped=gone)]


def _is_judged(state: PhasesState, task: str) -> bool:
    """Tell whether anything but the agent's own word decides that the task is done."""
    supervision = state.spec.plan.supervision
    return bool(state.plan[task].criteria) or (supervision.enabled and supervision.after)


def plan_changes(state: PhasesState, wanted: dict[str, str]) -> tuple[PlanChange, ...] | str:
    """Give new tasks, new names and another order as changes of the plan."""
    changes: list[PlanChange] = []
    for task, name in wanted.items():
        known = state.plan.get(task)
        if known is None:
            if not TASK_ID.match(task) or not 1 <= int(task.partition(".")[0]) <= len(state.spec.plan.phases):
                return f"pending_tasks: {task!r} is no task of a phase that exists"
            made = PlanTask(id=task, name=name, description=name, criteria=read_criteria([name]))
            changes.append(PlanChange(action="add", task=task, made=made))
        elif known.name != name:
            changes.append(PlanChange(action="describe", task=task, made=msgspec.structs.replace(known, name=name)))
    open_tasks = [task.id for task in state.pending() if task.id in wanted]
    if [task for task in wanted if task in open_tasks] != open_tasks:
        changes += [PlanChange(action="move", task=task) for task in wanted if task not in state.completed]
    seen: set[str] = set()
    plan = change_plan(state.plan, changes)
    for one in plan.values():
        if any(need in plan and need not in seen for need in one.needs):
            return f"pending_tasks: {one.id} would come before what it needs"
        seen.add(one.id)
    return tuple(changes)


def _agents(state: PhasesState, read: AgentStateDocument) -> list[PhasesEvent]:
    """Stop the agents that were taken out, and spawn them again."""
    kept = {(agent.type, agent.task) for agent in read.active_agents}
    done = {entry.task for entry in read.completed_tasks}
    dropped = []
    for work in state.works.values():
        agent = active_agent(state, work)
        if agent is not None and agent.status != "blocked" and (agent.type, agent.task) not in kept and task_of(work) not in done:
            dropped.append(work)
    again = tuple(work.unit for work in dropped if not (isinstance(work, TaskWork) and work.asking))
    return [AgentsDropped(steps=again)] if again else []


def is_old_format(document: object) -> bool:
    """Tell whether this is the state of the system that came before."""
    return isinstance(document, dict) and "orchestrator" not in document and {"status", "current_step"} <= set(document)


def read_state_document(document: object) -> AgentStateDocument | list[str]:
    """Read the state file, or all its faults."""
    if not isinstance(document, dict):
        return ["the document must be a JSON object"]
    if is_old_format(document):
        return [OLD_FORMAT]
    faults: list[str] = []
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(AgentStateDocument):
        name = field.name
        if name not in document:
            faults.append(f"{name}: is missing")
            continue
        try:
            parts[name] = typed.convert(document[name], field.type)
        except msgspec.ValidationError as error:
            faults.append(_place(name, str(error)))
    if "safety_bounds" in parts:
        faults += _bounds_faults(parts["safety_bounds"])
    if "completed_tasks" in parts and "pending_tasks" in parts:
        done = [entry.task for entry in parts["completed_tasks"]]
        wanted = [entry.task for entry in parts["pending_tasks"]]
        faults += [f"pending_tasks: task {task} is also in completed_tasks" for task in wanted if task in done]
        faults += [f"completed_tasks: task {task} stands twice" for task in dict.fromkeys(done) if done.count(task) > 1]
        faults += [f"pending_tasks: task {task} stands twice" for task in dict.fromkeys(wanted) if wanted.count(task) > 1]
    return faults or AgentStateDocument(**parts)


def _bounds_faults(bounds: SafetyBounds) -> list[str]:
    faults = []
    if bounds.max_iterations_per_task < 1:
        faults.append("safety_bounds.max_iterations_per_task: must be a whole number, at least 1")
    for name, read in (("max_cost", read_money_usd), ("max_time", read_time_s)):
        try:
            read(getattr(bounds, name), name)
        except InvalidValue as error:
            faults.append(f"safety_bounds.{name}: {str(error).rstrip('.')}")
    return faults


def _place(name: str, said: str) -> str:
    """Put `Expected int, got str - at $.current_phase` under the name of its part."""
    what, _, where = said.partition(" - at `$")
    return f"{name}{where.rstrip('`')}: {what}"
