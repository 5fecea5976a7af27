"""The spellings of loop state files: names of fields, words for a status, numbers and times, as older tools wrote them.

`core/foreign` reads objects by these names. Nothing here decides what a loop becomes; that is `imports`.
"""

from __future__ import annotations

from agent_orchestrator.core.foreign.values import snake
from agent_orchestrator.systems.loop.transitions import LoopStatus

NAMES: dict[str, tuple[str, ...]] = {
    "version": ("version", "schema_version"),
    "loop_id": ("loop_id", "id"),
    "task": ("task", "prompt", "description", "task_summary", "task_description", "objective", "goal"),
    "completion_criteria": (
        *("completion_criteria", "completion", "completion_criterion", "completion_promise", "criteria", "success_criteria"),
        *("acceptance_criteria",),
    ),
    "status": ("status",),
    "iteration": ("iteration", "current_iteration", "iteration_count", "iterations_completed", "total_iterations"),
    "started_at": ("started_at", "start_time", "started", "created_at", "start_time_ms"),
    "completed_at": (
        *("completed_at", "completed_time", "completion_time", "completion_date", "end_time", "ended_at", "finished_at"),
        *("aborted_at", "failed_at", "end_time_ms"),
    ),
    "last_updated": ("last_updated", "updated_at", "last_active", "last_update", "last_updated_at", "timestamp"),
    "owner": ("owner",),
    "configuration": ("configuration", "config", "settings", "options"),
    "max_iterations": ("max_iterations", "max_iteration", "iteration_limit"),
    "timeout_minutes": ("timeout_minutes", "timeout"),
    "timeout_ms": ("timeout_ms",),
    "interactive": ("interactive",),
    "auto_test": ("auto_test",),
    "checkpoint_interval": ("checkpoint_interval", "checkpoint_frequency"),
    "execution_mode": ("execution_mode",),
    "progress": ("progress",),
    "metrics": ("metrics",),
    "history": ("iterations", "history", "iteration_history"),
    "learnings": ("learnings", "lessons", "lessons_learned"),
    "last_result": ("last_result",),
    "last_checkpoint": ("last_checkpoint",),
    "checkpoints": ("checkpoints",),
    "error_context": ("error_context", "error", "error_message", "last_error"),
    "active": ("active",),
    "completed": ("completed", "success"),
    "result": ("result",),
}
"""The fields of a loop and how they are spelled, the first that is there and usable being the one; in snake_case."""

ENTRY: dict[str, tuple[str, ...]] = {
    "iteration": ("iteration", "number", "iteration_number", "index"),
    "summary": ("action", "summary", "description", "focus", "title", "task"),
    "notes": ("notes", "result", "outcome", "message"),
    "error": ("error", "failure", "error_message"),
    "passed": ("passed", "success", "completed"),
    "status": ("status",),
    "started_at": NAMES["started_at"],
    "completed_at": (*NAMES["completed_at"], "timestamp"),
    "duration_seconds": ("duration_seconds", "duration", "duration_s"),
    "duration_ms": ("duration_ms",),
    "learnings": NAMES["learnings"],
}
"""The fields of one iteration in a history."""

_WORDS: dict[LoopStatus, str] = {
    LoopStatus.COMPLETED: "completed complete success succeeded successful done finished passed",
    LoopStatus.FAILED: "failed failure error errored limit_reached max_iterations max_iterations_reached timeout timed_out stuck",
    LoopStatus.ABORTED: "aborted abort cancelled canceled stopped killed terminated",
    LoopStatus.CRASHED: "crashed crash",
    LoopStatus.PAUSED: "paused suspended interrupted waiting blocked on_hold pending queued idle not_started",
    LoopStatus.RUNNING: "running in_progress active started iterating working executing partial_success",
    LoopStatus.COMPLETING: "completing verifying",
}
STATUS_WORDS = {word: status for status, words in _WORDS.items() for word in words.split()}
"""The words that tools and people use for a status, in snake_case."""


def status_of(value: object) -> LoopStatus | None:
    """Return the status that a word means."""
    return STATUS_WORDS.get(snake(value)) if isinstance(value, str) else None
