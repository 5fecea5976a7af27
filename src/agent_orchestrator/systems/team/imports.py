"""The files of a team without a journal: what of them is taken over, sloppy ones included, and what had to be changed.

`pm_state.json` is the plan, `group_status.json` how far each group is; the rest is history. Nobody is at work here: a group
waits for whoever was working on it. Finished work stays finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.values import label_of, say, snake, time_of
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.errors import InvalidDocument, UsageError
from agent_orchestrator.systems.team.documents import GROUP_STATUS, MESSAGES, ORCHESTRATOR_STATE, PM_STATE
from agent_orchestrator.systems.team.events import Imported, PlanMade, TeamEvent
from agent_orchestrator.systems.team.fields import LEFT_OUT, NOT_A_TIME, TeamFields, drop_huge, list_entries
from agent_orchestrator.systems.team.foreign_history import read_decisions, read_group_status, read_messages
from agent_orchestrator.systems.team.foreign_plan import ForeignGroup, ForeignPlan
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.proposals import draw
from agent_orchestrator.systems.team.roles import Proposal
from agent_orchestrator.systems.team.shapes import ImportedGroup
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.spellings import SKIPPED, read_status

_ROOTS = {PM_STATE: "", GROUP_STATUS: "group_status", ORCHESTRATOR_STATE: "orchestrator_state"}
_ROOTS |= {f"{MESSAGES}/{box}.json": f"messages/{box}" for box in ENDS}
"""The beginnings of the paths of each file's fields; those of the plan stand alone."""
_PHASES = ("initialization", "pm_planning", "developer_working", "qa_testing", "tech_review", "pm_final_check")
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
    account: FieldAccount


def read_requirements(manager: Mapping[str, Any]) -> str | None:
    """Read the requirements of a `pm_state.json`, for want of them its names of groups; None when it is no team's."""
    fields = TeamFields(manager, FieldAccount())
    if given := fields.take_texts(*_REQUIREMENTS):
        return "\n".join(given)
    plan = ForeignPlan(FieldAccount())
    plan.read(fields, {})
    return "\n".join(group.name or f"Group {group.id}" for group in plan.groups) or None


def import_files(
    files: Mapping[str, dict[str, Any]], path: str, spec: TeamSpec, look: Callable[[str], BranchState]
) -> ImportedTeam:
    """Read the files of `coordination/`, by their names in it, as far as they can be used; `look` knows branches."""
    account = FieldAccount()
    found = {name: drop_huge(document, _ROOTS[name], account) for name, document in files.items() if name in _ROOTS}
    manager = TeamFields(found.get(PM_STATE, {}), account)
    story = TeamFields(found.get(ORCHESTRATOR_STATE, {}), account, _ROOTS[ORCHESTRATOR_STATE])
    statuses = _statuses(found.get(GROUP_STATUS, {}), account)
    if not manager.take_texts(*_REQUIREMENTS):
        account.change(f"original_requirements: was missing, is {spec.requirements!r}")
    plan = ForeignPlan(account)
    plan.read(manager, statuses)
    if not plan.groups:
        what = manager.path("task_groups")
        raise InvalidDocument(path=path, what="state file", detail=f"it has no {what}: there is no plan to take over")
    team = _Standing(manager, story)
    told = {group.id: _told(plan, group.id, statuses, account) for group in plan.groups}
    wanted = {group.id: _wanted(group, told[group.id], team) for group in plan.groups}
    for group in plan.groups:
        fields = told[group.id][0]
        group.branch_name = fields.settle(group.branch_name, "branch_name", "branch")
        group.name = fields.settle(group.name, "group_name", "name") or ""
    made = _draw(manager, plan, path, account)
    team.settle(wanted)
    groups: dict[str, ImportedGroup] = {}
    for drawn in made.groups:
        status = _status(drawn.id, wanted[drawn.id], (drawn.branch_name, spec.into), team.kept, look, account)
        groups[drawn.id] = read_group_status(told[drawn.id][0], drawn.id, status, plan)
    for name, (where, _) in statuses.items():
        if plan.find(name) is None:
            account.change(f"{where}: {LEFT_OUT}, the plan has no such group")
    fact = Imported(
        groups=groups,
        tasks={task.id: task.status for task in plan.tasks.all.values() if task.done and task.status is not None},
        messages={box: read_messages(found.get(f"{MESSAGES}/{box}.json", {}), box, plan, account) for box in ENDS},
        decisions=read_decisions(story),
        spawns=story.take_count("total_spawns"),
        iteration=story.take_count("iteration"),
        plan_iteration=manager.take_count("iteration"),
        started_us=_time_us(story, "start_time", "started_at"),
        ended_us=team.read_end(),
    )
    session = manager.take_text("session_id", "session") or story.take_text("session_id", "session")
    _close(manager, story, groups, account)
    return ImportedTeam(session=session, facts=(made, fact, team.event), account=account)


class _Standing:
    """The standing of the team as a whole: what its files say, and what follows from its groups."""

    def __init__(self, manager: TeamFields, story: TeamFields) -> None:
        self._manager, self._story = manager, story
        said = [*manager.peek("status", "state"), *story.peek("status", "state", "current_phase", "phase")]
        self._told, self._own = story.take("status", "state"), manager.take("status", "state")
        self._percentage = manager.take_number("completion_percentage", "completion_percent", "progress_percentage")
        full = self._percentage is not None and self._percentage >= 100
        story.read("current_phase", _read_phase, "phase", wrong="is no known phase")
        self.finished = any(read_status(value) == "complete" for _, value in said) or (full and self._told is None)
        self.full = self.finished or full
        self.kept = False
        self.event: TeamEvent = Paused(reason="imported")

    def settle(self, wanted: Mapping[str, str]) -> None:
        """Say how the team stands, from the statuses of its groups."""
        account = self._manager.account
        counted = round(100 * sum(status == "complete" for status in wanted.values()) / len(wanted), 1)
        if self._percentage is not None and abs(self._percentage - counted) > 1:
            place = self._manager.path("completion_percentage")
            account.change(f"{place}: was {self._percentage}, is {counted}, counted from the groups")
        self.kept = self.finished and all(status == "complete" for status in wanted.values())
        if self.kept:
            self.event = Ended(stop=StopReason.COMPLETED, detail="imported")
            return
        for fields, told in ((self._story, self._told), (self._manager, self._own)):
            if told is not None and read_status(told) != "in_progress":
                account.change(f"{fields.path('status')}: was {say(told)}, is running")

    def read_end(self) -> int | None:
        """Read the end of a team that has one."""
        names = ("end_time", "ended_at", "completed_at")
        if self.kept:
            return _time_us(self._story, *names)
        self._story.ignore("the team has not ended", *names)
        return None


def _read_phase(given: object) -> object:
    """Give a phase that is known; it is counted anew."""
    return given if isinstance(given, str) and (given in _PHASES or read_status(given) is not None) else None


def _time_us(fields: TeamFields, *names: str) -> int | None:
    moment = fields.read(names[0], time_of, *names[1:], wrong=NOT_A_TIME)
    return from_iso(moment) if moment is not None else None


def _draw(manager: TeamFields, plan: ForeignPlan, path: str, account: FieldAccount) -> PlanMade:
    told = manager.take("mode", "execution_mode")
    word = str(told).lower() if told is not None else ""
    mode = "parallel" if "parallel" in word else "simple" if "simple" in word or "sequential" in word else None
    if told is not None and mode is None:
        account.change(f"{manager.path('mode')}: {say(told)} is neither simple nor parallel; {LEFT_OUT}")
    tasks = [{"id": task.id, "description": task.description, "group_id": task.group} for task in plan.tasks.all.values()]
    try:
        groups = [group.proposed() for group in plan.groups]
        proposal = typed.convert({"mode": mode, "groups": groups, "tasks": tasks}, Proposal)
    except msgspec.ValidationError as error:
        raise InvalidDocument(path=path, what="state file", detail=str(error)) from None
    drawn = draw(proposal, {}, (), ())
    if isinstance(drawn, Failure):
        raise InvalidDocument(path=path, what="state file", detail=f"{manager.path('task_groups')}: {drawn.message.rstrip('.')}")
    for made, group in zip(drawn.groups, plan.groups, strict=True):
        if made.branch_name != group.branch_name:
            account.change(f"{group.where}: the branch of {group.id} was {group.branch_name!r}, is {made.branch_name}")
    return PlanMade(
        mode=mode or ("parallel" if len(groups) > 1 else "simple"),
        mode_reasoning=manager.take_text("mode_reasoning") or "",
        tasks=drawn.tasks,
        groups=drawn.groups,
    )


def _statuses(document: dict[str, Any], account: FieldAccount) -> dict[str, tuple[str, Any]]:
    """Give the groups of a `group_status.json` with their places in it; some keep them one level deeper, or as a list."""
    file = TeamFields(document, account, _ROOTS[GROUP_STATUS])
    held = [(key, value) for key, value in file.peek("groups", "group_status", "task_groups") if _holds_groups(value)]
    if not held or len(document) > 3:
        return {name: (file.place(name), value) for name, value in document.items()}
    (key, value), found = held[0], {name: (file.place(name), told) for name, told in document.items()}
    del found[key]
    for number, (where, name, entry) in enumerate(list_entries(value, file.place(key), account)):
        named = [label_of(entry[one]) for one in entry if snake(one) in ("group_id", "id")] if isinstance(entry, dict) else []
        found[name or next(filter(None, named), f"[{number}]")] = where, entry
    return found


def _holds_groups(value: object) -> bool:
    """Tell a map or list of groups from a group that is called like one."""
    return isinstance(value, list) or (isinstance(value, dict) and not {"group_id", "status", "state"} & {*map(snake, value)})


Told = tuple[TeamFields, list[str | None]]
"""The fields that `group_status.json` has of a group, and its status in every place there."""


def _told(plan: ForeignPlan, group: str, statuses: Mapping[str, tuple[str, Any]], account: FieldAccount) -> Told:
    """Find what `group_status.json` has of a group; a bare word is its status."""
    found = [place for name, place in statuses.items() if (one := plan.find(name)) is not None and one.id == group]
    objects: list[TeamFields] = []
    said: list[str | None] = []
    for where, told in found:
        given = told if isinstance(told, dict) else {}
        if not isinstance(told, dict) and told is not None:
            said.append(status := read_status(told))
            account.change(f"{where}: {say(told)} is no known status; {LEFT_OUT}") if status is None else account.take(where)
        if objects and given:
            account.change(f"{where}: {LEFT_OUT}, group {group} is there twice")
            fields = TeamFields(given, FieldAccount())
        else:
            fields = TeamFields(given, account, where)
            objects.append(fields)
        said.append(fields.take_status())
    return objects[0] if objects else TeamFields({}, account, f"{_ROOTS[GROUP_STATUS]}.{group}"), said


def _wanted(group: ForeignGroup, told: Told, team: _Standing) -> str:
    """Say how far a group is by its files: finished when any of them says so."""
    fields, said = told
    own = "complete" if "complete" in said else next(filter(None, said), None)
    account, place = fields.account, fields.path("status")
    if own is None and group.status is None and team.full:
        account.change(f"{group.where}.status: was missing, is complete: the team is")
        return "complete"
    if own == SKIPPED:
        account.change(f"{place}: was {SKIPPED}, is complete: nobody is to begin it")
    own = _PROGRESS.get(own or "", own)
    planned = _PROGRESS.get(group.status or "", group.status)
    if planned == "complete" and own not in (None, "complete"):
        account.change(f"{place}: was {own}, is complete: pm_state.json has it so")
    return "complete" if "complete" in (own, planned) else own or planned or "pending"


def _status(
    name: str,
    wanted: str,
    branches: tuple[str, str],
    kept: bool,
    look: Callable[[str], BranchState],
    account: FieldAccount,
) -> str:
    """Say where the group goes on: done stays done, merged or not; begun work goes on where its branch is."""
    branch, into = branches
    found, status = look(branch), _WAITING.get(wanted, wanted)
    if found is BranchState.INTO and wanted != "complete":
        way = f"switch to the branch that groups are merged into, or name it with --into; {into} is a group's own"
        raise UsageError(detail=f"The team cannot be taken over: {way}.")
    if wanted == "complete" and found is BranchState.OPEN:
        way = "merge it yourself" if kept else f"merge it before the team continues, with `git merge {branch}`"
        account.change(f"group {name}: is complete, though {branch} is not merged into {into}; {way}")
    if wanted == "complete" and found is BranchState.MISSING:
        account.change(f"group {name}: is complete by its files alone, there is no branch {branch} here that could show it")
    if wanted not in ("complete", "pending") and found is BranchState.MISSING:
        account.change(f"group {name}: was {wanted}, but there is no branch {branch} here; it is pending")
        return "pending"
    if status != wanted:
        account.change(f"group {name}: was {wanted}, and nobody works here; it is {status}")
    return status


def _close(manager: TeamFields, story: TeamFields, groups: Mapping[str, ImportedGroup], account: FieldAccount) -> None:
    """Say what of the files is counted anew, and what is left out."""
    phases = manager.take("execution_phases", "phases")
    if phases is not None:
        account.change(f"{manager.path('execution_phases')}: made anew from what groups depend on")
    agents = story.take("active_agents")
    for where, _, agent in list_entries(agents, story.path("active_agents"), account):
        given = TeamFields(agent, FieldAccount()) if isinstance(agent, dict) else None
        who = f"{given.take('agent_type', 'type')} of {given.take('group_id', 'group')}" if given is not None else say(agent)
        account.change(f"{where}: {who} does not work here")
    for fields in (manager, story):
        fields.put_down("last_update", "last_updated", "updated_at", "estimated_time_remaining_minutes", "session_id", "session")
        fields.finish()
