"""A state.json that a person edited: what of it is adopted.

The configuration and a legal change of status are; everything derived is recomputed.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent_orchestrator.core.events import Aborted, EditRefused, Paused, Resumed, StopReason
from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.systems.loop.decide.directives import changed_spec
from agent_orchestrator.systems.loop.events import Concluded, LoopEvent, OptionsChanged
from agent_orchestrator.systems.loop.spec import ExecutionMode, LoopSpec
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.transitions import LoopStatus, refusal

BY_HAND = "set by hand in state.json"
VERSION_FORM = re.compile(r"2\.\d+\.\d+\Z")


def check_state_document(document: object) -> list[str]:
    """Every fault of a state.json, each with the path of its field; unknown fields are none."""
    if not isinstance(document, dict):
        return ["the document must be a JSON object"]
    faults = [f"{name}: is missing" for name in ("version", "loop_id", "status", "iteration") if name not in document]
    if not isinstance(version := document.get("version", "2.0.0"), str) or not VERSION_FORM.match(version):
        faults.append(f"version: {version!r} is not a version 2.x.y")
    if document.get("status", "running") not in list(LoopStatus):
        faults.append(f"status: {document['status']!r} is not one of {', '.join(LoopStatus)}")
    if not _count(document.get("iteration", 0), 0):
        faults.append("iteration: must be a whole number, at least 0")
    configuration = document.get("configuration", {})
    if not isinstance(configuration, dict):
        return [*faults, "configuration: must be an object"]
    return [*faults, *configuration_faults(configuration)]


def configuration_faults(given: dict[str, Any]) -> list[str]:
    """List the faults of a `configuration`, each with the path of its field."""
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
    if wanted is not state.status and wanted in (LoopStatus.COMPLETING, LoopStatus.COMPLETED):
        faults = [f"status: an edit cannot make it {wanted}: its check decides, which a resume runs"]
    elif wanted is not state.status and (why := refusal(state.stage, wanted)) is not None:
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


def _count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
