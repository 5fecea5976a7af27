"""A state.json that a person edited, or that came from elsewhere: what of it is adopted.

The configuration and a legal change of status are; everything derived is recomputed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from agent_orchestrator.core.events import Aborted, EditRefused, Ended, Paused, Resumed, StopReason
from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.decide.directives import changed_spec
from agent_orchestrator.systems.loop.events import Concluded, Imported, LoopEvent, OptionsChanged
from agent_orchestrator.systems.loop.spec import ExecutionMode, LoopSpec, is_loop_id, loop_id
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.transitions import ENDED, LoopStatus, refusal

BY_HAND = "set by hand in state.json"
IMPORTED = "imported"
_LASTING = ("task", "prompt", "description", "started_at", "startedAt")
_VERSION = re.compile(r"2\.\d+\.\d+\Z")


def check_state_document(document: object) -> list[str]:
    """Every fault of a state.json, each with the path of its field; unknown fields are none."""
    if not isinstance(document, dict):
        return ["the document must be a JSON object"]
    faults = [f"{name}: is missing" for name in ("version", "loop_id", "status", "iteration") if name not in document]
    if not isinstance(version := document.get("version", "2.0.0"), str) or not _VERSION.match(version):
        faults.append(f"version: {version!r} is not a version 2.x.y")
    if document.get("status", "running") not in list(LoopStatus):
        faults.append(f"status: {document['status']!r} is not one of {', '.join(LoopStatus)}")
    if not _count(document.get("iteration", 0), 0):
        faults.append("iteration: must be a whole number, at least 0")
    configuration = document.get("configuration", {})
    if not isinstance(configuration, dict):
        return [*faults, "configuration: must be an object"]
    return [*faults, *_configuration_faults(configuration)]


def _configuration_faults(given: dict[str, Any]) -> list[str]:
    faults = []
    for name, least in (("max_iterations", 1), ("checkpoint_interval", 1), ("timeout_minutes", 1)):
        if name in given and not _count(given[name], least) and not (name == "timeout_minutes" and given[name] is None):
            faults.append(f"configuration.{name}: must be a whole number, at least {least}")
    flags = ("interactive", "auto_test")
    faults += [f"configuration.{name}: must be true or false" for name in flags if not isinstance(given.get(name, False), bool)]
    if given.get("execution_mode", "default") not in list(ExecutionMode):
        faults.append(f"configuration.execution_mode: must be one of {', '.join(ExecutionMode)}")
    return faults


def adopt_edit(state: LoopState, edit: Edited) -> list[LoopEvent]:
    """Adopts what a person changed, or refuses the edit with all its faults; other files than state.json are derived."""
    if not edit.path.endswith("/state.json"):
        return []
    document = edit.document
    faults = check_state_document(document)
    if not faults and document["loop_id"] != state.context.run:
        faults = [f"loop_id: {document['loop_id']!r} is another loop"]
    wanted = LoopStatus(document["status"]) if not faults else state.status
    if wanted is not state.status and (why := refusal(state.stage, wanted)) is not None:
        faults = [f"status: {why}"]
    if faults:
        return [EditRefused(problems=tuple(faults))]
    events: list[LoopEvent] = []
    changes = _changes(state.spec, document.get("configuration", {}))
    if changes:
        events.append(OptionsChanged(changes=changes))
    return events if wanted is state.status else [*events, *_change_status(wanted)]


def _changes(spec: LoopSpec, given: dict[str, Any]) -> dict[str, Any]:
    held = msgspec.to_builtins(changed_spec(spec, {}))
    blank = msgspec.to_builtins(msgspec.structs.asdict(spec))
    names = ("max_iterations", "timeout_minutes", "interactive", "auto_test", "checkpoint_interval", "execution_mode")
    return {name: given[name] for name in names if name in given and given[name] != held.get(name, blank[name])}


def _change_status(wanted: LoopStatus) -> list[LoopEvent]:
    match wanted:
        case LoopStatus.PAUSED:
            return [Paused(reason=BY_HAND)]
        case LoopStatus.RUNNING:
            return [Resumed()]
        case LoopStatus.ABORTED:
            return [Aborted(reason=BY_HAND)]
        case _:
            return [Concluded(stop=StopReason.FAILED, detail=BY_HAND, crashed=wanted is LoopStatus.CRASHED)]


class ImportedLoop(msgspec.Struct, frozen=True):
    """A loop made of a foreign state file: what it is asked to do, its facts after those of `begin`, what was changed."""

    name: str
    """The loop's id: its own, or one that is the same whenever the same loop is read."""
    spec: LoopSpec
    facts: tuple[LoopEvent, ...]
    notes: tuple[str, ...]


def import_state(document: object, path: str) -> ImportedLoop:
    """Reads a state.json or a legacy current-loop.json without a journal, sloppy ones included."""
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what="loop state", detail="it is not a JSON object")
    notes: list[str] = []
    given = {**document, **{_snake(key): value for key, value in document.items() if isinstance(key, str)}}
    task = given.get("task") or given.get("prompt") or given.get("description")
    criterion = given.get("completion_criteria") or given.get("completion") or given.get("completion_promise")
    if not (isinstance(task, str) and task.strip() and isinstance(criterion, str) and criterion.strip()):
        raise InvalidDocument(path=path, what="loop state", detail="it has no task and completion_criteria")
    loop = given.get("loop_id")
    if not is_loop_id(loop):
        notes.append(f"loop_id: {loop!r} is not an id; a new one is made" if loop is not None else "loop_id: made")
        loop = _id_for(task, document)
    configuration = given.get("configuration")
    options = configuration if isinstance(configuration, dict) else {}
    spec = _import_spec(task, criterion, {**given, **options}, notes)
    iteration = given.get("iteration", given.get("current_iteration", 0))
    if not _count(iteration, 0):
        notes.append(f"iteration: {iteration!r} is not a count; 0 is used")
        iteration = 0
    started, left = _time(given.get("started_at"), notes), _time(given.get("completed_at") or given.get("last_updated"), [])
    counted = _import_metrics(given.get("metrics"))
    if started is not None and left is not None:
        counted.setdefault("spent_s", max(0, from_iso(left) - from_iso(started)) // US)
    ended_at = left if given.get("status") in ENDED else None
    fact = Imported(iteration=iteration, checks=_import_checks(given, notes), started_at=started, ended_at=ended_at, **counted)
    return ImportedLoop(loop, spec, (fact, *_standstill(given, notes)), tuple(notes))


def _id_for(task: str, document: dict[str, Any]) -> str:
    """Made of what stays the same in a file as long as it is about the same loop, so that it is taken over once."""
    kept = {name: document[name] for name in _LASTING if name in document}
    return loop_id(task, hashlib.sha256(msgspec.json.encode(kept)).hexdigest()[:8])


def _import_metrics(metrics: object) -> dict[str, Any]:
    """Read what the file counted and a journal cannot recompute; what it does not say is left out."""
    given = metrics if isinstance(metrics, dict) else {}
    names = {
        "successes": "successful_iterations",
        "failures": "failed_iterations",
        "tokens": "total_tokens",
        "spent_s": "total_duration_seconds",
    }
    kept: dict[str, Any] = {mine: given[name] for mine, name in names.items() if _count(given.get(name), 0)}
    cost = given.get("total_cost_usd")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0:
        kept["cost_usd"] = float(cost)
    return kept


def _import_spec(task: str, criterion: str, given: dict[str, Any], notes: list[str]) -> LoopSpec:
    spec = LoopSpec(task=task, completion=criterion, owner=str(given.get("owner") or ""))
    for name in ("max_iterations", "timeout_minutes", "interactive", "auto_test", "checkpoint_interval", "execution_mode"):
        if given.get(name) is None:
            continue
        if _configuration_faults({name: given[name]}):
            notes.append(f"configuration.{name}: {given[name]!r} is not usable; the default is used")
        else:
            spec = changed_spec(spec, {name: given[name]})
    return spec


def _import_checks(given: dict[str, Any], notes: list[str]) -> tuple[dict[str, Any], ...]:
    progress = given.get("progress")
    checks = progress.get("completion_checks") if isinstance(progress, dict) else None
    kept = []
    for check in checks if isinstance(checks, list) else []:
        fine = isinstance(check, dict) and isinstance(check.get("passed"), bool) and _count(check.get("iteration"), 0)
        if fine and _time(check.get("timestamp"), []) is not None:
            output = check.get("output")
            kept.append({**{name: check[name] for name in ("iteration", "timestamp", "passed")}, "output": str(output or "")})
        else:
            notes.append("progress.completion_checks: an entry that is not one was left out")
    return tuple(kept)


def _standstill(given: dict[str, Any], notes: list[str]) -> list[LoopEvent]:
    """Leave it as it is until it is resumed: ended as it was, or paused."""
    status, context = given.get("status"), given.get("error_context")
    said = context.get("error_message") if isinstance(context, dict) else None
    why = said if isinstance(said, str) and said.strip() else IMPORTED
    match status:
        case LoopStatus.COMPLETED:
            return [Ended(stop=StopReason.COMPLETED, detail=IMPORTED)]
        case LoopStatus.ABORTED:
            return [Ended(stop=StopReason.ABORTED, detail=IMPORTED)]
        case LoopStatus.FAILED:
            return [Ended(stop=StopReason.FAILED, detail=why)]
        case LoopStatus.CRASHED:
            return [Concluded(stop=StopReason.FAILED, detail=why, crashed=True), Ended(stop=StopReason.FAILED, detail=why)]
    if status != LoopStatus.PAUSED:
        notes.append(f"status: was {status}, is paused until it is resumed")
    return [Paused(reason=IMPORTED)]


def _time(value: object, notes: list[str]) -> str | None:
    if isinstance(value, str):
        try:
            from_iso(value)
        except ValueError:
            notes.append(f"started_at: {value!r} is not a time")
        else:
            return value
    return None


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f"_{match[1].lower()}", key)


def _count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
