"""The files of a team without a journal: what of them is taken over, sloppy ones included, and what had to be changed.

`pm_state.json` is the plan, `group_status.json` how far each group is; the rest is history. Nobody is at work here: a group
waits for whoever was working on it. Finished work stays finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.foreign import read_time_us
from agent_orchestrator.errors import InvalidDocument, UsageError
from agent_orchestrator.systems.team.documents import GROUP_STATUS, MESSAGES, ORCHESTRATOR_STATE, PM_STATE
from agent_orchestrator.systems.team.events import Imported, PlanMade, TeamEvent
from agent_orchestrator.systems.team.fields import LEFT_OUT, TeamFields, drop_huge
from agent_orchestrator.systems.team.foreign_history import read_decisions, read_group_status, read_messages
from agent_orchestrator.systems.team.foreign_plan import ForeignGroup, ForeignPlan
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.proposals import draw
from agent_orchestrator.systems.team.roles import Proposal
from agent_orchestrator.systems.team.shapes import ImportedGroup
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.spellings import SKIPPED, read_status

FILES = (PM_STATE, GROUP_STATUS, ORCHESTRATOR_STATE, *(f"{MESSAGES}/{box}.json" for box in ENDS))
_PROGRESS = {"in_progress": "dev_working", "assigned": "pending", SKIPPED: "complete"}
_WAITING = {"qa_testing": "waiting_qa", "tech_review": "waiting_review"}
_REQUIREMENTS = ("original_requirements", "requirements", "user_requirements", "original_request", "user_request", "goal")


class BranchState(StrEnum):
    """The state of a group's branch in this repository."""

    MISSING = "missing"
    INTO = "into"
    """It is the branch that groups are merged into."""
    OPEN = "open"
    MERGED = "merged"


class ImportedTeam(msgspec.Struct, frozen=True, kw_only=True):
    """A team made of foreign files: its session, its facts after those of `begin`, what was changed."""

    session: str | None
    facts: tuple[TeamEvent, ...]
    notes: tuple[str, ...]


def read_requirements(manager: Mapping[str, Any]) -> str | None:
    """Read the requirements of a `pm_state.json`, for want of them its names of groups; None when it is no team's."""
    fields = TeamFields(manager, "", [])
    if given := fields.take_texts(*_REQUIREMENTS):
        return "\n".join(given)
    plan = ForeignPlan([])
    plan.read(fields, {})
    return "\n".join(group.name or f"Group {group.id}" for group in plan.groups) or None


def import_files(
    files: Mapping[str, dict[str, Any]], path: str, spec: TeamSpec, look: Callable[[str], BranchState]
) -> ImportedTeam:
    """Read the files of `coordination/`, by their names in it, as far as they can be used; `look` knows branches."""
    notes: list[str] = []
    found = {name: drop_huge(document, "", notes) for name, document in files.items()}
    manager = TeamFields(found.get(PM_STATE, {}), "", notes)
    story = TeamFields(found.get(ORCHESTRATOR_STATE, {}), "orchestrator_state", notes)
    statuses = _statuses(found.get(GROUP_STATUS, {}))
    if not manager.take_texts(*_REQUIREMENTS):
        notes.append(f"original_requirements: was missing, is {spec.requirements!r}")
    plan = ForeignPlan(notes)
    plan.read(manager, statuses)
    if not plan.groups:
        raise InvalidDocument(path=path, what="state file", detail="it has no task_groups: there is no plan to take over")
    read = {group.id: _told(plan, group.id, statuses, notes) for group in plan.groups}
    for group in plan.groups:
        told = TeamFields(read[group.id][1], "", [])
        group.branch_name = group.branch_name or told.take_text("branch_name", "branch")
        group.name = group.name or told.take_text("group_name", "name") or ""
    made = _draw(manager, plan, path, notes)
    team = _Standing(manager, story, notes)
    wanted = {group.id: _wanted(group, read[group.id], team, notes) for group in plan.groups}
    team.settle(wanted)
    groups: dict[str, ImportedGroup] = {}
    for drawn in made.groups:
        status = _status(drawn.id, wanted[drawn.id], (drawn.branch_name, spec.into), team.kept, look, notes)
        groups[drawn.id] = read_group_status(*read[drawn.id], status, notes)
    notes += [f"group_status.{name}: {LEFT_OUT}, the plan has no such group" for name in statuses if plan.find(name) is None]
    fact = Imported(
        groups=groups,
        tasks={task.id: task.status for task in plan.tasks.all.values() if task.done and task.status is not None},
        messages={box: read_messages(found.get(f"{MESSAGES}/{box}.json", {}), box, plan, notes) for box in ENDS},
        decisions=read_decisions(story.take("decisions_log", "decisions"), notes),
        spawns=story.take_count("total_spawns"),
        iteration=story.take_count("iteration"),
        plan_iteration=manager.take_count("iteration"),
        started_us=read_time_us(story.take("start_time", "started_at"), "orchestrator_state.start_time", notes),
        ended_us=team.read_end(story, notes),
    )
    session = manager.take_text("session_id", "session") or story.take_text("session_id", "session")
    _close(manager, story, groups, notes)
    return ImportedTeam(session=session, facts=(made, fact, team.event), notes=tuple(notes))


class _Standing:
    """The standing of the team as a whole: what its files say, and what follows from its groups."""

    def __init__(self, manager: TeamFields, story: TeamFields, notes: list[str]) -> None:
        self._notes = notes
        self._told = story.take("status", "state")
        self._own = manager.take("status", "state")
        self._percentage = manager.take_number("completion_percentage", "completion_percent", "progress_percentage")
        full = self._percentage is not None and self._percentage >= 100
        words = [read_status(self._told), read_status(self._own), read_status(story.take("current_phase", "phase"))]
        self.finished = "complete" in words or (full and self._told is None)
        self.full = self.finished or full
        self.kept = False
        self.event: TeamEvent = Paused(reason="imported")

    def settle(self, wanted: Mapping[str, str]) -> None:
        """Say how the team stands, from the statuses of its groups."""
        counted = round(100 * sum(status == "complete" for status in wanted.values()) / len(wanted), 1)
        if self._percentage is not None and abs(self._percentage - counted) > 1:
            self._notes.append(f"completion_percentage: was {self._percentage}, is {counted}, counted from the groups")
        self.kept = self.finished and all(status == "complete" for status in wanted.values())
        if self.kept:
            self.event = Ended(stop=StopReason.COMPLETED, detail="imported")
            return
        if self._told is not None and read_status(self._told) != "in_progress":
            self._notes.append(f"orchestrator_state.status: was {self._told}, is running")
        if self._own is not None and read_status(self._own) != "in_progress":
            self._notes.append(f"status: was {self._own}, is running")

    def read_end(self, story: TeamFields, notes: list[str]) -> int | None:
        """Read the end of a team that has one."""
        given = story.take("end_time", "ended_at", "completed_at")
        if given is not None and not self.kept:
            notes.append(f"orchestrator_state.end_time: {LEFT_OUT}, the team has not ended")
            return None
        return read_time_us(given, "orchestrator_state.end_time", notes)


def _draw(manager: TeamFields, plan: ForeignPlan, path: str, notes: list[str]) -> PlanMade:
    told = manager.take("mode", "execution_mode")
    word = str(told).lower() if told is not None else ""
    mode = "parallel" if "parallel" in word else "simple" if "simple" in word or "sequential" in word else None
    if told is not None and mode is None:
        notes.append(f"{manager.path('mode')}: {told!r} is neither simple nor parallel; {LEFT_OUT}")
    tasks = [{"id": task.id, "description": task.description, "group_id": task.group} for task in plan.tasks.all.values()]
    try:
        groups = [group.proposed() for group in plan.groups]
        proposal = msgspec.convert({"mode": mode, "groups": groups, "tasks": tasks}, Proposal)
    except msgspec.ValidationError as error:
        raise InvalidDocument(path=path, what="state file", detail=str(error)) from None
    drawn = draw(proposal, {}, (), ())
    if isinstance(drawn, Failure):
        raise InvalidDocument(path=path, what="state file", detail=f"task_groups: {drawn.message.rstrip('.')}")
    for made, group in zip(drawn.groups, plan.groups, strict=True):
        if made.branch_name != group.branch_name:
            notes.append(f"{group.where}: the branch of {group.id} was {group.branch_name!r}, is {made.branch_name}")
    return PlanMade(
        mode=mode or ("parallel" if len(groups) > 1 else "simple"),
        mode_reasoning=manager.take_text("mode_reasoning") or "",
        tasks=drawn.tasks,
        groups=drawn.groups,
    )


def _statuses(document: dict[str, Any]) -> dict[str, Any]:
    """Give the groups of a `group_status.json`, which some keep one level deeper or as a list."""
    for name in ("groups", "group_status", "task_groups"):
        if len(document) <= 3 and isinstance(document.get(name), dict | list):
            rest = {key: value for key, value in document.items() if key != name}
            return {**_by_name(document[name]), **rest}
    return document


def _by_name(given: dict[str, Any] | list[Any]) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    names = [entry.get("group_id") or entry.get("id") if isinstance(entry, dict) else None for entry in given]
    return {str(name or f"[{number}]"): given[number] for number, name in enumerate(names)}


def _told(plan: ForeignPlan, group: str, statuses: Mapping[str, Any], notes: list[str]) -> tuple[str, dict[str, Any]]:
    """Find what `group_status.json` has of a group, and where; a bare word is its status."""
    found = [name for name in statuses if (one := plan.find(name)) is not None and one.id == group]
    notes += [f"group_status.{more}: {LEFT_OUT}, group {group} is there twice" for more in found[1:]]
    if not found:
        return f"group_status.{group}", {}
    where, told = f"group_status.{found[0]}", statuses[found[0]]
    if isinstance(told, dict):
        return where, told
    if read_status(told) is None:
        notes.append(f"{where}: is not an object; {LEFT_OUT}")
        return where, {}
    return where, {"status": told}


def _wanted(group: ForeignGroup, read: tuple[str, dict[str, Any]], team: _Standing, notes: list[str]) -> str:
    """Say how far a group is by its files: finished when any of them says so."""
    where, told = read
    given = TeamFields(told, where, []).take("status", "state")
    own = read_status(given)
    if given is not None and own is None:
        notes.append(f"{where}.status: {given!r} is no known status; {LEFT_OUT}")
    if own is None and group.status is None and team.full:
        notes.append(f"{group.where}.status: was missing, is complete: the team is")
        return "complete"
    if own == SKIPPED:
        notes.append(f"{where}.status: was {given}, is complete: nobody is to begin it")
    own = _PROGRESS.get(own or "", own)
    planned = _PROGRESS.get(group.status or "", group.status)
    if planned == "complete" and own not in (None, "complete"):
        notes.append(f"{where}.status: was {own}, is complete: pm_state.json has it so")
    return "complete" if "complete" in (own, planned) else own or planned or "pending"


def _status(
    name: str,
    wanted: str,
    branches: tuple[str, str],
    kept: bool,
    look: Callable[[str], BranchState],
    notes: list[str],
) -> str:
    """Say where the group goes on: in a team that is not finished work is complete where it was merged, begun where it is."""
    branch, into = branches
    found, status = look(branch), _WAITING.get(wanted, wanted)
    if found is BranchState.INTO and wanted != "complete":
        way = f"switch to the branch that groups are merged into, or name it with --into; {into} is a group's own"
        raise UsageError(detail=f"The team cannot be taken over: {way}.")
    if wanted == "complete" and found is BranchState.OPEN and not kept:
        notes.append(f"group {name}: was complete, but {branch} is not merged into {into}; it is waiting_review")
        return "waiting_review"
    if wanted == "complete" and found is BranchState.OPEN:
        notes.append(f"group {name}: is complete, though {branch} is not merged into {into}; merge it yourself")
    if wanted == "complete" and found is BranchState.MISSING:
        notes.append(f"group {name}: is complete by its files alone, there is no branch {branch} here that could show it")
    if wanted not in ("complete", "pending") and found is BranchState.MISSING:
        notes.append(f"group {name}: was {wanted}, but there is no branch {branch} here; it is pending")
        return "pending"
    if status != wanted:
        notes.append(f"group {name}: was {wanted}, and nobody works here; it is {status}")
    return status


def _close(manager: TeamFields, story: TeamFields, groups: Mapping[str, ImportedGroup], notes: list[str]) -> None:
    """Say what of the files is counted anew, and what is left out."""
    phases = manager.take("execution_phases", "phases")
    if phases is not None:
        notes.append(f"{manager.path('execution_phases')}: made anew from what groups depend on")
    agents = story.take("active_agents")
    for agent in agents if isinstance(agents, list) else []:
        given = TeamFields(agent, "", []) if isinstance(agent, dict) else None
        who = f"{given.take('agent_type', 'type')} of {given.take('group_id', 'group')}" if given is not None else repr(agent)
        notes.append(f"active_agents: {who} does not work here")
    if agents is not None and not isinstance(agents, list):
        notes.append(f"{story.path('active_agents')}: is not a list; {LEFT_OUT}")
    for fields in (manager, story):
        fields.put_down("last_update", "estimated_time_remaining_minutes", "session_id", "session")
        fields.finish()
