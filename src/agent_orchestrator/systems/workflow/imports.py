"""A run_state.json without a journal: what of it is taken over, in any spelling, and the account of its fields.

The workflow file says what is to be done; the state file says what was. A step at work there is PENDING here; one that is
done stays done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields, Names
from agent_orchestrator.core.foreign.values import (
    count_of,
    is_done,
    label_of,
    name_kind,
    say,
    text_of,
    texts_of,
    time_of,
    word_of,
)
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.units import from_iso, iso
from agent_orchestrator.errors import InvalidDocument, InvalidId, Refused
from agent_orchestrator.systems.workflow.decide.outcomes import stringify
from agent_orchestrator.systems.workflow.events import StateEdited, WorkflowEvent
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import FINISHED, StepDocument, StepStatus

TOP: Names = {
    "run_id": ("run_id", "id", "run"),
    "workflow_name": ("workflow_name", "workflow", "name"),
    "created_at": ("created_at", "started_at", "start_time", "created"),
    "steps": ("steps", "step_states", "stages", "nodes", "tasks"),
}
STEP: Names = {
    "id": ("id", "step_id", "step", "name"),
    "status": ("status", "state"),
    "attempts": ("attempts", "attempt", "attempt_count"),
    "iteration_count": ("iteration_count", "iterations", "iteration"),
    "report_path": ("report_path", "report"),
    "started_at": ("started_at", "start_time", "started"),
    "ended_at": ("ended_at", "end_time", "completed_at", "finished_at", "ended"),
    "last_error": ("last_error", "error", "error_message"),
    "artifacts": ("artifacts", "outputs", "files"),
    "logs": ("logs", "log"),
}
_PLACES = ("repo_dir", "reports_dir", "manual_inputs_dir", "working_directory")
_COUNTED = ("updated_at", "last_updated", "current_step", "status", "ended_at", "completed_at")
_WORDS = {
    StepStatus.COMPLETED: "",
    StepStatus.FAILED: "failed failure error errored timeout timed_out aborted cancelled canceled",
    StepStatus.SKIPPED: "skipped skip not_needed",
    StepStatus.RUNNING: "running in_progress active started executing working retrying",
    StepStatus.WAITING_ON_HUMAN: "waiting_on_human waiting waiting_for_human blocked paused needs_approval awaiting_approval",
    StepStatus.PENDING: "pending queued ready not_started todo new planned",
}
STATUS = {word: status for status, words in _WORDS.items() for word in words.split()}
_AT_WORK = (StepStatus.RUNNING, StepStatus.WAITING_ON_HUMAN)


class ImportedWorkflow(msgspec.Struct, frozen=True):
    """A run made of a foreign state file: its name, its birth, its facts after those of `begin`, and the account.

    It does not go on by itself: it is paused, or ended if it was, so that a resume does what it does elsewhere.
    """

    run: str
    created_us: int | None
    facts: tuple[WorkflowEvent, ...]
    account: FieldAccount


def import_state(document: object, spec: WorkflowSpec | None, path: str = "run_state.json", folder: str = "") -> ImportedWorkflow:
    """Read a run_state.json without a journal, sloppy ones included; one that names no run is called after its `folder`."""
    if spec is None:
        raise Refused(why="a run without a journal can only be taken over together with its workflow file")
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what="state file", detail=f"it is not a JSON object but {name_kind(document)}")
    account = FieldAccount()
    top = ForeignFields(document, account, names=TOP)
    if not top.has("steps"):
        has = f"it has {', '.join(list(document)[:8])}" if document else "it is empty"
        raise InvalidDocument(path=path, what="state file", detail=f"it has no `steps` object ({has})")
    run = _read_run(top, folder, account)
    if (name := top.read("workflow_name", label_of)) != spec.name:
        account.change(f"{top.path('workflow_name')}: was {name!r}, is {spec.name!r}")
    created = top.read("created_at", _moment, wrong="is not a time")
    if created is None:
        account.change(f"{top.path('created_at')}: there is no time; the time of the import is used")
    changes = _read_steps(top, spec, path, account)
    top.ignore("the run works where it is imported", *_PLACES)
    top.ignore("counted anew", *_COUNTED)
    top.leave_rest()
    facts: list[WorkflowEvent] = [StateEdited(changes=changes)] if changes else []
    created_us = from_iso(created) if created is not None else None
    return ImportedWorkflow(run, created_us, (*facts, _standstill(spec, changes)), account)


def _read_run(top: ForeignFields, folder: str, account: FieldAccount) -> str:
    given = top.read("run_id", label_of)
    if given is not None:
        return checked_id(given, top.path("run_id"))
    try:
        name = checked_id(folder, "run_id")
    except InvalidId:
        return checked_id(None, "run_id")
    account.change(f"run_id: the file has none; the run is {name}, as its folder is called")
    return name


def _read_steps(top: ForeignFields, spec: WorkflowSpec, path: str, account: FieldAccount) -> dict[str, dict[str, Any]]:
    known = {step.id for step in spec.steps}
    changes: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for place, unit, fields in _list_steps(top, path, account):
        if unit not in known or unit in seen:
            why = "it stands there twice" if unit in seen else "the workflow has no such step"
            account.leave(f"{place}: {why}")
            continue
        seen.add(unit)
        if isinstance(fields, dict):
            kept = _read_step(ForeignFields(fields, account, place, STEP), unit, place, account)
        else:
            kept = _read_word(fields, place, account)
        if kept:
            changes[unit] = kept
    account.change_all(f"steps.{step.id}: new, PENDING" for step in spec.steps if step.id not in seen)
    return changes


def _list_steps(top: ForeignFields, path: str, account: FieldAccount) -> Iterator[tuple[str, str, Any]]:
    """Give the steps with their places and ids: of an object by key, of a list by the id in each."""
    for key, value in top.spellings("steps"):
        place = top.place(key)
        if isinstance(value, dict):
            yield from ((f"{place}.{unit}", unit, fields) for unit, fields in value.items())
        elif isinstance(value, list):
            for number, fields in enumerate(value):
                inner = ForeignFields(fields, FieldAccount(), names=STEP) if isinstance(fields, dict) else None
                unit = inner.read("id", label_of) if inner is not None else label_of(fields)
                yield f"{place}[{number}]", unit or "", fields if inner is not None else {}
        else:
            detail = f"its {key} is {name_kind(value)}, not an object"
            raise InvalidDocument(path=path, what="state file", detail=detail)


def _read_word(value: object, place: str, account: FieldAccount) -> dict[str, Any]:
    """Read a step that is only a word, its status."""
    status = _status(value) if isinstance(value, str) else None
    if status is None or status in _AT_WORK:
        account.change(f"{place}: {say(value)} is {'no status' if status is None else status}, is PENDING")
        return {}
    account.change(f"{place}: {say(value)} is taken as its status, {status}") if value != status else account.take(place)
    return {"status": status} if status is not StepStatus.PENDING else {}


def _read_step(fields: ForeignFields, unit: str, place: str, account: FieldAccount) -> dict[str, Any]:
    blank, kept = msgspec.to_builtins(StepDocument()), {}
    for name, (reader, wrong) in _READERS.items():
        value = fields.read(name, reader, wrong=wrong)
        if name == "status" and value in _AT_WORK:
            account.change(f"{place}: was {value}, is PENDING")
        elif value is not None and value != blank[name]:
            kept[name] = value
    for key, value in fields.spellings("id"):
        if value == unit:
            account.take(fields.place(key))
        else:
            account.leave(f"{fields.place(key)} ({say(value)})")
    if kept.get("status") not in FINISHED and "ended_at" in kept and kept.get("status") != StepStatus.FAILED:
        account.leave(f"{fields.path('ended_at')} (the step has not ended)")
        del kept["ended_at"]
    fields.leave_rest()
    return kept


def _standstill(spec: WorkflowSpec, changes: dict[str, dict[str, Any]]) -> Ended | Paused:
    statuses = [changes.get(step.id, {}).get("status") for step in spec.steps]
    if StepStatus.FAILED in statuses:
        return Ended(stop=StopReason.FAILED, detail="imported")
    if all(status in FINISHED for status in statuses):
        return Ended(stop=StopReason.COMPLETED, detail="imported")
    return Paused(reason="imported")


def _status(value: object) -> StepStatus | None:
    if isinstance(value, str) and value in StepStatus.__members__:
        return StepStatus(value)
    if is_done(value):
        return StepStatus.COMPLETED
    return STATUS.get(word_of(value)) if isinstance(value, str) else None


def _moment(value: object) -> str | None:
    moment = time_of(value)
    return iso(from_iso(moment)) if moment is not None and not (isinstance(value, str) and value.endswith("Z")) else moment


def _texts(value: object) -> list[str] | None:
    texts = texts_of(value)
    return list(texts) if texts is not None else None


def _metrics(value: object) -> dict[str, str] | None:
    return stringify(value) if isinstance(value, dict) else None


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "status": (_status, f"is not one of {', '.join(StepStatus.__members__)}"),
    "attempts": (partial(count_of), "must be a whole number, at least 0"),
    "iteration_count": (partial(count_of), "must be a whole number, at least 0"),
    "report_path": (text_of, "must be text or null"),
    "started_at": (_moment, "is not a time like 2025-01-15T14:30:00.123456Z"),
    "ended_at": (_moment, "is not a time like 2025-01-15T14:30:00.123456Z"),
    "last_error": (label_of, "must be text or null"),
    "artifacts": (_texts, "must be a list of texts"),
    "metrics": (_metrics, "must map names to values"),
    "logs": (_texts, "must be a list of texts"),
    "manual_input_path": (text_of, "must be text or null"),
    "blocked_by_loop": (text_of, "must be text or null"),
}
