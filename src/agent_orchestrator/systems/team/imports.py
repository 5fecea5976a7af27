"""The files of a team without a journal: what of them is taken over, sloppy ones included, and what had to be changed.

`pm_state.json` is the plan, `group_status.json` how far each group is; the rest is history. Nobody is at work here: a group
waits for whoever was working on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.foreign import read_entries, read_entry, read_fields, read_part, read_time_us
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.team.documents import GROUP_STATUS, MESSAGES, ORCHESTRATOR_STATE, PM_STATE
from agent_orchestrator.systems.team.events import Imported, PlanMade, TeamEvent
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.proposals import draw
from agent_orchestrator.systems.team.roles import Proposal
from agent_orchestrator.systems.team.shapes import GroupEntry, GroupStatus, ImportedGroup, TaskEntry
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.state import Blocker, Decision, Feedback

FILES = (PM_STATE, GROUP_STATUS, ORCHESTRATOR_STATE, *(f"{MESSAGES}/{box}.json" for box in ENDS))
_PROGRESS = {"in_progress": "dev_working", "complete": "complete"}
_WAITING = {"qa_testing": "waiting_qa", "tech_review": "waiting_review"}
_FEEDBACK = {"iteration": 1, "decision": "changes_requested", "feedback": ""}
_DECISION = {"iteration": 0, "reasoning": ""}


class BranchState(StrEnum):
    """The state of a group's branch in this repository."""

    MISSING = "missing"
    OPEN = "open"
    MERGED = "merged"


class ImportedTeam(msgspec.Struct, frozen=True, kw_only=True):
    """A team made of foreign files: its session, its facts after those of `begin`, what was changed."""

    session: str | None
    facts: tuple[TeamEvent, ...]
    notes: tuple[str, ...]


def import_files(
    files: Mapping[str, dict[str, Any]], path: str, spec: TeamSpec, look: Callable[[str], BranchState]
) -> ImportedTeam:
    """Read the files of `coordination/`, by their names in it, as far as they can be used; `look` knows branches."""
    notes: list[str] = []
    manager, statuses = files.get(PM_STATE, {}), files.get(GROUP_STATUS, {})
    entries = [read_fields(one, "task_groups", GroupEntry, notes) for one in read_part(manager, "task_groups", list, notes)]
    tasks = [read_fields(one, "all_tasks", TaskEntry, notes) for one in read_part(manager, "all_tasks", list, notes)]
    if not entries:
        raise InvalidDocument(path=path, what="state file", detail="it has no task_groups: there is no plan to take over")
    plan = _plan(manager, entries, tasks, path, spec, notes)
    progress = {entry.id: entry.status for entry in entries}
    groups: dict[str, ImportedGroup] = {}
    for planned in plan.groups:
        read = read_fields(statuses.get(planned.id, {}), f"group_status.{planned.id}", GroupStatus, notes)
        wanted = read.status or _PROGRESS.get(progress[planned.id] or "", "pending")
        status = _status(planned.id, wanted, planned.branch_name, look, spec.into, notes)
        groups[planned.id] = _group(planned.id, status, read, notes)
    notes += [f"group_status.{name}: left out, the plan has no such group" for name in statuses if name not in groups]
    team = read_fields(files.get(ORCHESTRATOR_STATE, {}), "orchestrator_state", _Story, notes)
    stands = _standing(team.status, all(one.status == "complete" for one in groups.values()), notes)
    log = _dated(team.decisions_log or [], "decisions_log", notes)
    decisions = read_entries(log, "decisions_log", Decision, _DECISION, notes)
    fact = Imported(
        groups=groups,
        tasks={task.id: task.status for task in tasks if task.id is not None and task.status is not None},
        messages={box: _messages(files.get(f"{MESSAGES}/{box}.json", {}), box, groups, notes) for box in ENDS},
        decisions=tuple(msgspec.to_builtins(one) for one in decisions),
        spawns=team.total_spawns or 0,
        iteration=team.iteration or 0,
        plan_iteration=plan_iteration if isinstance(plan_iteration := manager.get("iteration"), int) else 0,
        started_us=read_time_us(team.start_time, "orchestrator_state.start_time", notes),
        ended_us=read_time_us(team.end_time, "orchestrator_state.end_time", notes) if isinstance(stands, Ended) else None,
    )
    gone = [f"{agent.get('agent_type')} of {agent.get('group_id')}" for agent in team.active_agents or []]
    notes += [f"active_agents: {who} does not work here" for who in gone]
    session = manager.get("session_id") or team.session_id
    return ImportedTeam(session=session if isinstance(session, str) else None, facts=(plan, fact, stands), notes=tuple(notes))


class _Story(msgspec.Struct):
    """The fields of orchestrator_state.json that are used."""

    session_id: str | None = None
    status: str | None = None
    iteration: int | None = None
    total_spawns: int | None = None
    active_agents: list[dict[str, Any]] | None = None
    decisions_log: list[Any] | None = None
    start_time: str | None = None
    end_time: str | None = None


def _plan(
    manager: dict[str, Any], entries: list[GroupEntry], tasks: list[TaskEntry], path: str, spec: TeamSpec, notes: list[str]
) -> PlanMade:
    known = {entry.id for entry in entries}
    groups = []
    for entry in entries:
        unknown = [name for name in entry.depends_on or [] if name not in known]
        notes += [f"task_groups: {entry.id} depends on {name!r}, which is no group; left out" for name in unknown]
        needs = [name for name in entry.depends_on or [] if name in known]
        groups.append({**_given(entry), "depends_on": needs})
    wanted = [_given(task) for task in tasks if task.group_id is None or task.group_id in known]
    notes += [f"all_tasks: {task.id} is left out, there is no group {task.group_id!r}" for task in tasks if _is_lost(task, known)]
    mode = manager.get("mode") if manager.get("mode") in ("simple", "parallel") else None
    try:
        proposal = msgspec.convert({"mode": mode, "groups": groups, "tasks": wanted}, Proposal)
    except msgspec.ValidationError as error:
        raise InvalidDocument(path=path, what="state file", detail=str(error)) from None
    drawn = draw(proposal, {}, (), ())
    if isinstance(drawn, Failure):
        raise InvalidDocument(path=path, what="state file", detail=drawn.message.rstrip("."))
    for group, entry in zip(drawn.groups, entries, strict=True):
        if group.branch_name != entry.branch_name:
            notes.append(f"task_groups: the branch of {group.id} was {entry.branch_name!r}, is {group.branch_name}")
    reasoning = manager.get("mode_reasoning")
    return PlanMade(
        mode=mode or ("parallel" if len(groups) > 1 else "simple"),
        mode_reasoning=reasoning if isinstance(reasoning, str) else "",
        tasks=drawn.tasks,
        groups=drawn.groups,
    )


def _is_lost(task: TaskEntry, groups: set[str | None]) -> bool:
    return task.group_id is not None and task.group_id not in groups


def _given(entry: GroupEntry | TaskEntry) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(entry).items() if value is not None and name != "status"}


def _status(name: str, wanted: str, branch: str, look: Callable[[str], BranchState], into: str, notes: list[str]) -> str:
    """Say where the group goes on: work counts as complete only where it was merged, and as begun only where it is."""
    found, status = look(branch), _WAITING.get(wanted, wanted)
    if wanted == "complete" and found is BranchState.OPEN:
        notes.append(f"group {name}: was complete, but {branch} is not merged into {into}; it is waiting_review")
        return "waiting_review"
    if wanted == "complete" and found is BranchState.MISSING:
        notes.append(f"group {name}: is complete by its files alone, there is no branch {branch} here that could show it")
    if wanted not in ("complete", "pending") and found is BranchState.MISSING:
        notes.append(f"group {name}: was {wanted}, but there is no branch {branch} here; it is pending")
        return "pending"
    if status != wanted:
        notes.append(f"group {name}: was {wanted}, and nobody works here; it is {status}")
    return status


def _group(name: str, status: str, read: GroupStatus, notes: list[str]) -> ImportedGroup:
    rounds, where = read.iterations, f"group_status.{name}"
    told = _dated([msgspec.to_builtins(one) for one in read.tech_lead_feedback or []], f"{where}.tech_lead_feedback", notes)
    blockers = [msgspec.to_builtins(one) for one in read.blockers or []]
    results = msgspec.to_builtins(read.test_results) if read.test_results is not None else {}
    quality = msgspec.to_builtins(read.quality_metrics) if read.quality_metrics is not None else {}
    return ImportedGroup(
        status=status,
        developer=(rounds.developer if rounds is not None else None) or 0,
        qa=(rounds.qa if rounds is not None else None) or 0,
        tech_lead=(rounds.tech_lead if rounds is not None else None) or 0,
        started_us=read_time_us(read.start_time, f"{where}.start_time", notes),
        ended_us=read_time_us(read.end_time, f"{where}.end_time", notes) if status == "complete" else None,
        files_modified=tuple(read.files_modified or ()),
        commits=tuple(read.commits or ()),
        test_results={kind: counts for kind, counts in results.items() if {"total", "passed", "failed"} <= counts.keys()},
        feedback=tuple(
            msgspec.to_builtins(one) for one in read_entries(told, f"{where}.tech_lead_feedback", Feedback, _FEEDBACK, notes)
        ),
        blockers=tuple(msgspec.to_builtins(one) for one in read_entries(blockers, f"{where}.blockers", Blocker, {}, notes)),
        quality={key: value for key, value in quality.items() if key != "first_pass_approval"},
    )


def _dated(entries: list[Any], where: str, notes: list[str]) -> list[Any]:
    """Give the entries, those whose time is none without it."""
    found = []
    for number, entry in enumerate(entries):
        given = entry.get("timestamp") if isinstance(entry, dict) else None
        if given is not None and read_time_us(given, f"{where}[{number}].timestamp", notes) is None:
            entry = {name: value for name, value in entry.items() if name != "timestamp"}
        found.append(entry)
    return found


def _messages(document: dict[str, Any], box: str, groups: Mapping[str, Any], notes: list[str]) -> tuple[dict[str, Any], ...]:
    kept = []
    for number, message in enumerate(read_part(document, "messages", list, notes)):
        where = f"messages/{box}[{number}]"
        read = read_entry(message, where, _Message, {}, notes)
        if read is not None and read.group_id not in groups:
            notes.append(f"{where}: left out, the plan has no group {read.group_id!r}")
        elif read is not None:
            kept.append(_whole(message, box))
    return tuple(kept)


def _whole(message: dict[str, Any], box: str) -> dict[str, Any]:
    """Fill a message with what its box says of it, in the seed's order, and without nulls."""
    given = {name: value for name, value in message.items() if value is not None}
    sender, receiver = ENDS[box]
    head = {"id": given["id"], "group_id": given["group_id"], "from": sender.value, "to": receiver.value}
    return {**head, **given, "read": given.get("read", False)}


class _Message(msgspec.Struct):
    """The fields that a message must have, and those that must have these types where they are there."""

    id: str
    group_id: str
    read: bool | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    timestamp: str | None = None
    subject: str | None = None
    context: dict[str, Any] | None = None
    feedback: str | None = None


def _standing(status: str | None, complete: bool, notes: list[str]) -> TeamEvent:
    if status == "completed" and complete:
        return Ended(stop=StopReason.COMPLETED, detail="imported")
    if status not in (None, "running"):
        notes.append(f"orchestrator_state.status: was {status}, is running")
    return Paused(reason="imported")
