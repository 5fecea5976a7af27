"""Files that a person edited: the status of groups and tasks is adopted, everything derived is simply written again."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.inputs import Edited
from agent_orchestrator.systems.team.documents import GROUP_STATUS, MESSAGES, ORCHESTRATOR_STATE, PM_STATE
from agent_orchestrator.systems.team.events import EditRefused, StatusesEdited, TeamEvent
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import GroupStatus, Messages, OrchestratorState, PmState
from agent_orchestrator.systems.team.state import TeamState
from agent_orchestrator.systems.team.status import progress_of, status_of, task_status

_PROGRESS = {"pending": "pending", "assigned": "pending", "in_progress": "dev_working", "complete": "complete"}


def shape_of(path: str) -> Any:
    """What a file of the seed has to look like, or None for one that is not ours."""
    if path.startswith(f"{MESSAGES}/"):
        return Messages
    return {PM_STATE: PmState, GROUP_STATUS: dict[str, GroupStatus], ORCHESTRATOR_STATE: OrchestratorState}.get(path)


def team_file(path: str) -> str | None:
    """The file of `coordination/` that a path names, wherever the folder lies; None when it names none."""
    name = path.rpartition("/")[2]
    places = (PM_STATE, GROUP_STATUS, ORCHESTRATOR_STATE, *(f"{MESSAGES}/{box}.json" for box in ENDS))
    return next((place for place in places if place.rpartition("/")[2] == name), None)


def check_document(path: str, document: object) -> list[str]:
    """What is wrong with an edited file, with the field at fault; unknown fields are no fault."""
    shape = shape_of(path)
    if shape is None:
        return []
    try:
        msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        return [str(error)]
    return []


def edited(state: TeamState, edit: Edited) -> list[TeamEvent]:
    """Adopts what a person changed, or refuses the edit with its fault."""
    faults = check_document(edit.path, edit.document)
    groups: dict[str, str] = {}
    tasks: dict[str, str] = {}
    if not faults and edit.path == PM_STATE:
        read = msgspec.convert(edit.document, PmState)
        if read.session_id != state.context.run:
            faults = [f"session_id: {read.session_id!r} is another session"]
        groups, tasks = _planned(state, read)
    elif not faults and edit.path == GROUP_STATUS:
        groups = _statuses(state, msgspec.convert(edit.document, dict[str, GroupStatus]))
    unknown = [f"there is no group {name!r}" for name in groups if name not in state.groups]
    unknown += [f"there is no task {name!r}" for name in tasks if name not in state.tasks]
    if state.lifecycle.ended and (groups or tasks):
        unknown = ["the run has ended"]
    if faults or unknown:
        return [EditRefused(path=edit.path, problems=(*faults, *unknown))]
    return [StatusesEdited(groups=groups, tasks=tasks)] if groups or tasks else []


def _planned(state: TeamState, read: PmState) -> tuple[dict[str, str], dict[str, str]]:
    groups: dict[str, str] = {}
    tasks: dict[str, str] = {}
    for entry in read.task_groups:
        name, status = entry.id or "", entry.status
        known = state.groups.get(name)
        if status is not None and (known is None or progress_of(state, known) != status):
            groups[name] = _PROGRESS[status]
    for task in read.all_tasks or []:
        name, wanted = task.id or "", task.status
        held = state.tasks.get(name)
        if wanted is not None and (held is None or task_status(state, held) != wanted):
            tasks[name] = wanted
    return groups, tasks


def _statuses(state: TeamState, read: dict[str, GroupStatus]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, entry in read.items():
        known = state.groups.get(name)
        if entry.status is not None and (known is None or status_of(state, known) != entry.status):
            found[name] = entry.status
    return found
