"""A run_state.json that a person edited: what of it is adopted.

Status, counters and results of steps are; everything derived is recomputed. Nothing is ever filled with defaults silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agent_orchestrator.core.events import EditRefused
from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.systems.workflow.events import StateEdited, WorkflowEvent
from agent_orchestrator.systems.workflow.state import FINISHED, StepStatus, WorkflowState

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
        if changed.get("status") in FINISHED and (why := _judge_of(state, unit)) is not None:
            faults.append(f"steps.{unit}.status: an edit cannot make it {changed['status']}: {why}")
        if changed:
            changes[unit] = changed
    if faults:
        return [EditRefused(problems=tuple(faults))]
    return [StateEdited(changes=changes)] if changes else []


def _judge_of(state: WorkflowState, unit: str) -> str | None:
    """Say who decides that a step is done, where that is not the agent's own word, and what to do instead of an edit."""
    spec, run = state.specs[unit], state.context.run
    if spec.human_in_the_loop:
        return f"a person decides, by `orc approve {run} {unit}` once it asks"
    if spec.check is not None:
        return "its check decides, which a resume runs"
    if spec.loop_back_to is not None:
        return "it is a gate, and its own report decides, for which a resume runs it"
    if spec.gates:
        return f"its gates decide ({', '.join(spec.gates)}); open them, then resume"
    return None


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
