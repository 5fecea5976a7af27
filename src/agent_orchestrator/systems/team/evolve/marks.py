"""The few ways in which a team's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.effects import Effect
from agent_orchestrator.systems.team.state import PM, FileCount, Group, Stage, TeamState, TeamUnit

RESTING = (Stage.PENDING, Stage.HELD, Stage.COMPLETE, Stage.WATCH, Stage.DONE)
"""Stages in which a unit begins nothing by itself."""


def begin(state: TeamState, unit: TeamUnit, effect: Effect) -> None:
    """Begin something that is no program: its number is taken, and nothing is due."""
    unit.launches += 1
    state.due.pop(unit.unit, None)
    state.doing.put(effect)


def launch(state: TeamState, unit: TeamUnit, effect: Effect, at_us: int) -> None:
    """Begin a program or a merge, which is kept among the unit's launches."""
    unit.open_launch(effect.id, at_us)
    state.due.pop(unit.unit, None)
    state.doing.put(effect)


def rest(state: TeamState, unit: TeamUnit) -> None:
    """Let the unit do nothing; it may begin what its stage asks for."""
    state.doing.drop(unit.unit)
    if unit.stage in RESTING:
        state.due.pop(unit.unit, None)
    else:
        state.due[unit.unit] = None


def move(state: TeamState, group: Group, stage: Stage) -> None:
    """Move the group to another stage."""
    group.stage = stage
    if stage is not Stage.DEVELOP:
        state.developing.pop(group.unit, None)
    if stage is Stage.MERGE:
        state.queue.join(state.spec.into, group.unit)
    rest(state, group)


def develop(state: TeamState, group: Group, because: str) -> None:
    """Let the developer be next, and say why."""
    group.because = because
    state.developing.pop(group.unit, None)
    state.queue.leave(state.spec.into, group.unit)
    move(state, group, Stage.DEVELOP)


def settle_manager(state: TeamState) -> None:
    """Let the project manager plan what was asked for since, watch, or check, when nothing of it is under way."""
    pm = state.pm
    if any(not one.planned for one in state.requirements):
        pm.stage = Stage.PLAN
    else:
        pm.stage = Stage.FINAL if state.all_complete else Stage.WATCH
    pm.turn = None
    rest(state, pm)


def touch(state: TeamState, document: FileCount, at_us: int) -> None:
    """Count a change of a document: once for each event."""
    document.updated_us = at_us
    if document.seen != state.events:
        document.seen = state.events
        document.iteration += 1


def touch_group(state: TeamState, group: Group, at_us: int) -> None:
    """Note that a group moved on, and with it perhaps the team's phase."""
    group.updated_us = at_us
    touch(state, state.team_file, at_us)


def touch_plan(state: TeamState, at_us: int) -> None:
    """Note that pm_state.json changed, if there is one."""
    if state.plan.made:
        touch(state, state.pm_file, at_us)


def recount(state: TeamState) -> None:
    """Make all that is kept besides the stages anew from them: after a person changed some."""
    groups = state.groups
    state.completed = [name for name in state.completed if groups[name].stage is Stage.COMPLETE]
    state.completed += [name for name, group in groups.items() if group.stage is Stage.COMPLETE and name not in state.completed]
    state.at_work = {name: None for name, group in groups.items() if state.is_in_progress(group)}
    state.holds.clear()
    for group in groups.values():
        group.missing = {name for name in group.depends_on if groups[name].stage is not Stage.COMPLETE}
        group.serialised = False
        group.held_for = {name for name in group.held_for if groups[name].stage is not Stage.COMPLETE}
        if group.stage is Stage.HELD and not group.held_for:
            group.stage, group.because = Stage.DEVELOP, "collision"
        for name in sorted(group.held_for):
            state.holds.setdefault(name, []).append(group.unit)
    state.ready = [name for name, group in groups.items() if group.stage is Stage.PENDING and not group.missing]
    state.due = {name: None for name in (PM, *groups) if _is_due(state, state.unit(name))}


def _is_due(state: TeamState, unit: TeamUnit) -> bool:
    return unit.stage not in RESTING and state.doing.of(unit.unit) is None
