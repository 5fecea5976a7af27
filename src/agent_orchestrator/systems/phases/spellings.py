"""The spellings of agent-state.json files: names of fields, words for a status, tasks as texts, as older tools wrote them."""

from __future__ import annotations

import re
from typing import Any

from agent_orchestrator.core.foreign.fields import Names
from agent_orchestrator.core.foreign.records import Readers
from agent_orchestrator.core.foreign.values import count_of, flag_of, is_done, label_of, word_of
from agent_orchestrator.core.units import as_float
from agent_orchestrator.systems.phases.state import PhasesStatus

TOP: Names = {
    "orchestrator": ("orchestrator",),
    "completed_tasks": ("completed_tasks", "done_tasks", "finished_tasks", "completed", "completed_todos"),
    "pending_tasks": ("pending_tasks", "remaining_tasks", "todo_tasks", "pending", "pending_todos"),
    "tasks": ("tasks", "all_tasks", "task_list"),
    "active_agents": ("active_agents", "agents"),
    "safety_bounds": ("safety_bounds", "bounds", "limits", "safety"),
    "learnings": ("learnings", "lessons", "lessons_learned"),
}
HEAD: Names = {
    "status": ("status", "state"),
    "task_doc": ("task_doc", "task_document", "document"),
    "start_time": ("start_time", "started_at", "time_started", "started", "created_at"),
    "end_time": ("end_time", "ended_at", "completed_at", "time_completed", "finished_at"),
}
FLAT: Names = {**TOP, **HEAD, "status": ("status", "state", "phase")}
"""The names in a file whose head stands at its top."""
BOUNDS: Names = {
    "max_iterations": ("max_iterations_per_task", "max_iterations", "maximum_iterations"),
    "max_cost": ("max_cost", "max_cost_usd", "budget_limit", "cost_limit", "budget"),
    "max_time": ("max_time", "time_limit"),
    "max_time_hours": ("max_time_hours",),
    "max_time_minutes": ("max_time_minutes",),
    "cost_so_far": ("cost_so_far", "budget_consumed", "cost", "total_cost", "cost_usd"),
    "elapsed_time": ("elapsed_time", "time_elapsed", "elapsed"),
    "warnings": ("warnings",),
}
COUNTED = ("current_phase", "total_phases", "current_task", "ralph_iteration", "outer_ralph", "last_updated", "updated_at")
"""The fields of a head that follow from the others."""

_AGO: Any = (("timestamp", "time", "date", "at", "created_at"), label_of)
_TASK: Any = (("task", "task_id", "id", "number"), label_of)
COMPLETED: Readers = {
    "task": _TASK,
    "name": (("name", "title", "task_name", "description"), label_of),
    "completed": (("completed", "completed_at", "finished_at", "end_time", "timestamp", "date"), label_of),
    "iterations": (("iterations", "iteration", "attempts", "ralph_iterations"), count_of),
    "time_elapsed": (("time_elapsed", "duration", "elapsed", "elapsed_time", "time"), label_of),
    "cost": (("cost", "cost_usd"), lambda value: _money(value)),
    "files_modified": (("files_modified", "files_changed", "files", "modified_files"), None),
    "success_criteria_met": (("success_criteria_met", "success_criteria", "criteria_met", "criteria"), lambda value: _met(value)),
}
PENDING: Readers = {
    "task": _TASK,
    "name": (("name", "title", "task_name", "description"), label_of),
    "phase": (("phase", "phase_number"), count_of),
}
LESSON: Readers = {
    "timestamp": _AGO,
    "task": (("task", "task_id"), label_of),
    "type": (("type", "kind", "category"), label_of),
    "lesson": (("lesson", "learning", "text", "message", "insight", "description"), label_of),
    "iteration": (("iteration",), count_of),
}
MILESTONE: Readers = {
    "phase": (("phase", "phase_number"), count_of),
    "completed": COMPLETED["completed"],
    "issue_url": (("issue_url", "url", "issue"), label_of),
}
CHECKPOINT: Readers = {
    "timestamp": _AGO,
    "task": _TASK,
    "phase": (("phase", "phase_number"), count_of),
    "git_sha": (("git_sha", "sha", "commit", "git_commit"), label_of),
    "state_snapshot": (("state_snapshot", "snapshot", "file"), label_of),
}
INTERVENTION: Readers = {"timestamp": _AGO, "task": (("task", "task_id"), label_of)}

_WORDS = {
    PhasesStatus.PLANNING: "planning plan setup planned not_started pending",
    PhasesStatus.EXECUTING: "executing running in_progress active working started paused blocked implementing implementation",
    PhasesStatus.REVIEWING: "reviewing review outer_ralph verifying",
    PhasesStatus.FAILED: "failed failure error aborted cancelled stopped",
}
STATUS = {word: status for status, words in _WORDS.items() for word in words.split()}
_TEXT = re.compile(r"\W*(?:task\s*#?)?(?P<task>\d{1,4}\.\d{1,4})(?!\d)\s*[:.)\]—–-]*\s*(?P<name>.*)\Z", re.S | re.I)


def read_stage(value: object) -> PhasesStatus | None:
    """Read the status of a run in whatever words."""
    if is_done(value):
        return PhasesStatus.COMPLETED
    return STATUS.get(word_of(value)) if isinstance(value, str) else None


def split_task(text: str) -> tuple[str, str]:
    """Split "✅ Task 1.1: Make it" into an id and a name; without a number the id is empty."""
    match = _TEXT.match(text)
    if match is None:
        return "", text.strip()
    phase, _, number = match["task"].partition(".")
    return f"{int(phase)}.{int(number)}", match["name"].strip()


def _money(value: object) -> str | None:
    return f"${as_float(value):.2f}" if isinstance(value, int | float) and not isinstance(value, bool) else label_of(value)


def _met(value: object) -> dict[str, bool] | None:
    """Read which criteria are met: by name, or a list of those that are."""
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return dict.fromkeys(value, True)
    if not isinstance(value, dict):
        return None
    read = {name: flag_of(met) if flag_of(met) is not None else is_done(met) for name, met in value.items()}
    return {name: bool(met) for name, met in read.items()}
