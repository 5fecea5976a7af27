"""A run_state.json that a person edited, or that came from elsewhere: what of it is adopted.

Status, counters and results of steps are; everything derived is recomputed. Nothing is ever filled with defaults silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core.events import EditRefused, Ended, Paused, StopReason
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.errors import InvalidDocument, Refused
from agent_orchestrator.systems.workflow.decide.outcomes import stringify
from agent_orchestrator.systems.workflow.events import StateEdited, WorkflowEvent
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import FINISHED, StepDocument, StepStatus, WorkflowState

ADOPTED = ("status", "attempts", "iteration_count", "last_error", "artifacts", "metrics", "logs")
"""The fields that an edit may change; paths and times are the engine's own."""

_TOP = ("run_id", "workflow_name", "repo_dir", "reports_dir", "manual_inputs_dir", "created_at", "updated_at")
_TIMES = ("created_at", "updated_at", "started_at", "ended_at")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)\Z")
_AT_WORK = (StepStatus.RUNNING, StepStatus.WAITING_ON_HUMAN)


def check_state_document(document: object) -> list[str]:
    """Every fault of a run_state.json, each with the path of its field; unknown fields are none."""
    if not isinstance(document, dict):
        return ["the document must be a JSON object"]
    faults = [fault for name in _TOP if (fault := _field_fault(document, name, name, _text))]
    steps = document.get("steps")
    if not isinstance(steps, dict):
        return [*faults, "steps: must be an object, step id to step" if "steps" in document else "steps: is missing"]
    for unit, step in steps.items():
        if not isinstance(step, dict):
            faults.append(f"steps.{unit}: must be an object")
            continue
        faults += [fault for name, wrong in _STEP.items() if (fault := _field_fault(step, name, f"steps.{unit}.{name}", wrong))]
    return faults


def adopt_edit(state: WorkflowState, edit: Edited) -> list[WorkflowEvent]:
    """Adopts the fields that differ from what we hold, or refuses the edit with all its faults."""
    faults = check_state_document(edit.document)
    if not faults:
        unknown = [unit for unit in edit.document["steps"] if unit not in state.steps]
        faults = [f"steps.{unit}: there is no such step in this run" for unit in unknown]
    if faults:
        return [EditRefused(problems=tuple(faults))]
    changes = {}
    for unit, fields in edit.document["steps"].items():
        held = state.steps[unit]
        changed = {name: fields[name] for name in ADOPTED if fields[name] != getattr(held, name)}
        if changed.get("status") in _AT_WORK:
            changed["status"] = StepStatus.PENDING.value
        if changed:
            changes[unit] = changed
    return [StateEdited(changes=changes)] if changes else []


class ImportedWorkflow(msgspec.Struct, frozen=True):
    """A run made of a foreign state file: its name, its birth, its facts after those of `begin`, and what was changed.

    It does not go on by itself: it is paused, or ended if it was, so that a resume does what it does elsewhere.
    """

    run: str
    created_us: int | None
    facts: tuple[WorkflowEvent, ...]
    notes: tuple[str, ...]


def import_state(document: object, spec: WorkflowSpec | None) -> ImportedWorkflow:
    """Reads a run_state.json without a journal, sloppy ones included; what it had at work becomes PENDING."""
    if spec is None:
        raise Refused(why="a run without a journal can only be taken over together with its workflow file")
    if not isinstance(document, dict) or not isinstance(document.get("steps"), dict):
        raise InvalidDocument(path="run_state.json", what="state file", detail="it has no `steps` object")
    run = checked_id(document.get("run_id"), "run_id")
    notes: list[str] = []
    created = document.get("created_at")
    created_us = from_iso(created) if _time(created) is None and created else None
    if created_us is None:
        notes.append(f"created_at: {created!r} is not a time; the time of the import is used")
    known = {step.id for step in spec.steps}
    changes: dict[str, dict[str, Any]] = {}
    for unit, fields in document["steps"].items():
        if unit not in known or not isinstance(fields, dict):
            why = "it is not an object" if unit in known else "the workflow has no such step"
            notes.append(f"steps.{unit}: left out, {why}")
            continue
        kept = _kept_fields(unit, fields, notes)
        if kept:
            changes[unit] = kept
    notes += [f"steps.{step.id}: new, PENDING" for step in spec.steps if step.id not in document["steps"]]
    facts: list[WorkflowEvent] = [StateEdited(changes=changes)] if changes else []
    return ImportedWorkflow(run, created_us, (*facts, _standstill(spec, changes)), tuple(notes))


def _standstill(spec: WorkflowSpec, changes: dict[str, dict[str, Any]]) -> Ended | Paused:
    statuses = [changes.get(step.id, {}).get("status") for step in spec.steps]
    if StepStatus.FAILED in statuses:
        return Ended(stop=StopReason.FAILED, detail="imported")
    if all(status in FINISHED for status in statuses):
        return Ended(stop=StopReason.COMPLETED, detail="imported")
    return Paused(reason="imported")


def _kept_fields(unit: str, fields: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    blank = msgspec.to_builtins(StepDocument())
    for name, wrong in _STEP.items():
        value = fields.get(name, blank[name])
        if name == "metrics" and isinstance(value, dict):
            value = stringify(value)
        fault = wrong(value)
        if fault is not None:
            notes.append(f"steps.{unit}.{name}: {fault}; {blank[name]!r} is used")
        elif name == "status" and value in _AT_WORK:
            notes.append(f"steps.{unit}: was {value}, is PENDING")
        elif value != blank[name]:
            kept[name] = value
    return kept


def _field_fault(fields: dict[str, Any], name: str, path: str, wrong: Callable[[Any], str | None]) -> str | None:
    if name not in fields:
        return f"{path}: is missing"
    fault = wrong(fields[name]) or (_time(fields[name]) if name in _TIMES else None)
    return f"{path}: {fault}" if fault else None


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be text"


def _text_or_null(value: Any) -> str | None:
    return None if value is None or isinstance(value, str) else "must be text or null"


def _time(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and _TIME.match(value):
        try:
            from_iso(value)
        except ValueError:
            pass
        else:
            return None
    return f"{value!r} is not a time like 2025-01-15T14:30:00.123456Z"


def _count(value: Any) -> str | None:
    return None if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "must be a whole number, at least 0"


def _status(value: Any) -> str | None:
    return None if value in StepStatus.__members__ else f"{value!r} is not one of {', '.join(StepStatus.__members__)}"


def _texts(value: Any) -> str | None:
    return None if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else "must be a list of texts"


def _metrics(value: Any) -> str | None:
    fine = isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())
    return None if fine else "must map names to texts"


_STEP: dict[str, Callable[[Any], str | None]] = {
    "status": _status,
    "attempts": _count,
    "iteration_count": _count,
    "report_path": _text_or_null,
    "started_at": _time,
    "ended_at": _time,
    "last_error": _text_or_null,
    "artifacts": _texts,
    "metrics": _metrics,
    "logs": _texts,
    "manual_input_path": _text_or_null,
    "blocked_by_loop": _text_or_null,
}
