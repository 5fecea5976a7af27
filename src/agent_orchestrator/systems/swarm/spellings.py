"""The spellings of bead records that other tools wrote: names of fields, words for a status."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields, Names
from agent_orchestrator.core.foreign.values import any_of, count_of, flag_of, is_done, label_of, number_of, time_of, word_of
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.systems.swarm.faults import faults_of
from agent_orchestrator.systems.swarm.records import AttemptStatus
from agent_orchestrator.systems.swarm.schema import RESULT, RUN

NAMES: Names = {
    "bead": ("bead", "bead_id", "issue", "issue_id", "id"),
    "agent": ("agent", "agent_name", "agent_type"),
    "repo": ("repo", "repository", "repo_path", "workdir"),
    "prompt": ("prompt", "task", "description", "title"),
    "prompt_full": ("prompt_full", "full_prompt"),
    "started_at": ("started_at", "start_time", "started", "dispatched_at", "created_at"),
    "finished_at": ("finished_at", "end_time", "ended_at", "completed_at", "finished"),
    "duration_seconds": ("duration_seconds", "duration", "duration_s"),
    "status": ("status", "state", "outcome"),
    "attempt": ("attempt", "attempt_number", "attempts"),
    "max_retries": ("max_retries", "max_attempts"),
    "session_name": ("session_name", "session", "tmux_session"),
    "output_summary": ("output_summary", "summary", "output"),
    "template_name": ("template_name", "template"),
    "failure_reason": ("failure_reason", "error"),
}
_WORDS = {
    AttemptStatus.FAILED: "failed failure error errored crashed aborted cancelled canceled killed stopped",
    AttemptStatus.TIMEOUT: "timeout timed_out",
    AttemptStatus.RUNNING: "running in_progress active started working pending queued dispatched",
}
STATUS = {word: status for status, words in _WORDS.items() for word in words.split()}
_WRITTEN = re.compile(RUN["properties"]["started_at"]["pattern"])
"""A time as the format has it, or a placeholder that a script left."""
_SCHEMAS = {"run": RUN, "result": RESULT}


def respell_record(kind: str, record: dict[str, Any], account: FieldAccount) -> dict[str, Any]:
    """Give a record by the names of the format, its values readable by it; what it has no place for is left out."""
    fields = ForeignFields(record, account, kind, NAMES)
    found = {name: fields.read(name, _READERS.get(name, any_of)) for name in _SCHEMAS[kind]["properties"]}
    fields.leave_rest()
    known = {name: value for name, value in found.items() if value is not None}
    for fault in faults_of(kind, known):
        name, _, why = fault.partition(": ")
        if known.pop(name, None) is not None:
            account.change(f"{fields.path(name)}: {why}, it is left out")
    return known


def _status(value: object) -> str | None:
    if is_done(value):
        return AttemptStatus.DONE.value
    return STATUS.get(word_of(value)) if isinstance(value, str) else None


def _moment(value: object) -> str | None:
    if isinstance(value, str) and _WRITTEN.match(value):
        return value
    moment = time_of(value)
    return stamp(from_iso(moment)) if moment is not None else None


def _whole(value: object) -> int | None:
    number = number_of(value)
    return round(number) if number is not None else count_of(value)


def _code(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 2**31 else None
    return count_of(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "schema_version": count_of,
    **dict.fromkeys(("bead", "agent", "model", "repo", "prompt", "prompt_full", "prompt_hash", "session_name"), label_of),
    **dict.fromkeys(("result_file", "output_summary", "failure_reason", "template_name", "reason"), label_of),
    **dict.fromkeys(("started_at", "finished_at"), _moment),
    "duration_seconds": _whole,
    "status": _status,
    "attempt": count_of,
    "max_retries": count_of,
    "exit_code": _code,
    "will_retry": flag_of,
}
