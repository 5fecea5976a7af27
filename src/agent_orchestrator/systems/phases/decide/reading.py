"""Reads a state file that came from outside: every fault with the path of its field; unknown fields are none.

What the seed's own example has is accepted: phases counted from 1 and ids that are no hashes. The task id decides.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.bounds import read_money_usd, read_time_s
from agent_orchestrator.systems.phases.spec import Lesson
from agent_orchestrator.systems.phases.state import CheckpointEntry, CompletedTask, Intervention, Milestone, Status

OLD_FORMAT = (
    "Migration not automatic: this is the old format (status, current_step, total_steps); "
    "old workflows must complete under the old system, new workflows use the new state format"
)


class ReadOrchestrator(msgspec.Struct, frozen=True, kw_only=True):
    """`orchestrator`, as it may be found."""

    status: Status
    task_doc: str
    current_phase: int
    total_phases: int
    current_task: str
    ralph_iteration: int
    outer_ralph: bool
    start_time: str
    end_time: str | None = None


class ReadSupervisor(msgspec.Struct, frozen=True, kw_only=True):
    """`supervisor`, as it may be found."""

    enabled: bool
    checks_performed: int
    conflicts_detected: int
    auto_fixes_applied: int
    re_plans_triggered: int
    last_check: str | None = None
    interventions: list[Intervention]


class ReadAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `active_agents`."""

    type: str
    task: str
    started: str
    iteration: int
    status: str


class ReadPending(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `pending_tasks`."""

    phase: int
    task: str
    name: str


class ReadBounds(msgspec.Struct, frozen=True, kw_only=True):
    """`safety_bounds`, as it may be found."""

    max_iterations_per_task: int
    max_cost: str
    max_time: str
    cost_so_far: str
    elapsed_time: str
    warnings: list[str]


class ReadState(msgspec.Struct, frozen=True, kw_only=True):
    """`agent-state.json`, as it may be found."""

    orchestrator: ReadOrchestrator
    supervisor: ReadSupervisor
    active_agents: list[ReadAgent]
    completed_tasks: list[CompletedTask]
    pending_tasks: list[ReadPending]
    safety_bounds: ReadBounds
    learnings: list[Lesson]
    milestones: list[Milestone]
    checkpoints: list[CheckpointEntry]


def is_old_format(document: object) -> bool:
    """Whether this is the state of the system that came before."""
    return isinstance(document, dict) and "orchestrator" not in document and {"status", "current_step"} <= set(document)


def read_state_document(document: object) -> ReadState | list[str]:
    """The state file, or all its faults."""
    if not isinstance(document, dict):
        return ["the document must be a JSON object"]
    if is_old_format(document):
        return [OLD_FORMAT]
    faults: list[str] = []
    parts: dict[str, Any] = {}
    for name, kind in _PARTS.items():
        if name not in document:
            faults.append(f"{name}: is missing")
            continue
        try:
            parts[name] = msgspec.convert(document[name], kind)
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
    return faults or ReadState(**parts)


_PARTS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(ReadState)}


def _bounds_faults(bounds: ReadBounds) -> list[str]:
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
    """`Expected int, got str - at $.current_phase` under the name of its part."""
    what, _, where = said.partition(" - at `$")
    return f"{name}{where.rstrip('`')}: {what}"
