"""Facts about groups: planned, worked on, tested, reviewed, merged, or taken over from files."""

from __future__ import annotations

from bisect import insort
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.inputs import Commit, MergeVerdict
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.team import events as e
from agent_orchestrator.systems.team.evolve.marks import (
    develop,
    move,
    recount,
    rest,
    settle_manager,
    touch,
    touch_group,
    touch_plan,
)
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import ImportedGroup
from agent_orchestrator.systems.team.state import Blocker, Decision, Feedback, Group, Stage, TeamState, TeamTask
from agent_orchestrator.systems.team.status import task_status

STAGES = {
    "pending": Stage.PENDING,
    "dev_working": Stage.DEVELOP,
    "qa_failed": Stage.DEVELOP,
    "changes_requested": Stage.DEVELOP,
    "dev_blocked": Stage.CONSULT,
    "waiting_qa": Stage.QA,
    "qa_testing": Stage.QA,
    "waiting_review": Stage.REVIEW,
    "tech_review": Stage.REVIEW,
    "complete": Stage.COMPLETE,
}
"""The stage at which a group goes on whose status came from outside."""


def _plan_made(state: TeamState, event: e.PlanMade, at_us: int) -> None:
    state.plan.mode = event.mode
    state.plan.mode_reasoning = event.mode_reasoning or state.plan.mode_reasoning
    for task in event.tasks:
        state.tasks[task.id] = TeamTask(id=task.id, description=task.description, group_id=task.group_id)
    for planned in event.groups:
        fields = msgspec.structs.asdict(planned)
        name = fields.pop("id")
        state.groups[name] = Group(unit=name, stage=Stage.PENDING, order=len(state.groups), updated_us=at_us, **fields)
    _connect(state, [group.id for group in event.groups])
    settle_manager(state)
    touch_plan(state, at_us)
    touch(state, state.team_file, at_us)


def _connect(state: TeamState, names: list[str]) -> None:
    """Note who waits for whom, and at which level each group stands."""
    groups = state.groups
    for name in names:
        group = groups[name]
        group.missing = {other for other in group.depends_on if groups[other].stage is not Stage.COMPLETE}
        for other in group.depends_on:
            state.dependents.setdefault(other, []).append(name)
        if not group.missing:
            state.ready.append(name)
    left = list(names)
    while left:
        placed = [name for name in left if not any(other in left for other in groups[name].depends_on)]
        for name in placed:
            groups[name].level = 1 + max((groups[other].level for other in groups[name].depends_on), default=0)
        left = [name for name in left if name not in placed]


def _group_serialised(state: TeamState, event: e.GroupSerialised, at_us: int) -> None:
    group = state.groups[event.group]
    group.serialised = True
    group.updated_us = at_us
    touch_plan(state, at_us)


def _work_reported(state: TeamState, event: e.WorkReported, at_us: int) -> None:
    group = state.groups[event.group]
    group.summary = event.summary or group.summary
    group.notes = event.notes
    if event.unit_tests is not None:
        group.test_results = {"unit_tests": event.unit_tests, **_without(group.test_results, "unit_tests")}
    for source in ("person", "saving", "guidance"):
        group.points.pop(source, None)
    if event.status == "BLOCKED":
        group.blocks += 1
        group.blockers.append(Blocker(description=event.blocker))
    group.partials = group.partials + 1 if event.status == "PARTIAL" else 0
    group.then = Stage(event.then)
    move(state, group, Stage.SAVE)
    touch_group(state, group, at_us)


def _without(results: dict[str, dict[str, int]], *names: str) -> dict[str, dict[str, int]]:
    return {name: counts for name, counts in results.items() if name not in names}


def _work_saved(state: TeamState, event: e.WorkSaved, at_us: int) -> None:
    group = state.groups[event.group]
    touch_group(state, group, at_us)
    if event.unavailable:
        group.unsaved += 1
        group.points["saving"] = (event.unavailable,)
        develop(state, group, "saving")
        return
    group.unsaved = 0
    group.files_modified, group.commits, group.diff = event.files_modified, event.commits, event.diff
    if group.then is Stage.DEVELOP:
        develop(state, group, "partial")
    else:
        move(state, group, group.then)


def _collision_foreseen(state: TeamState, event: e.CollisionForeseen, at_us: int) -> None:
    group = state.groups[event.group]
    group.held_for = set(event.behind)
    for name in event.behind:
        state.holds.setdefault(name, []).append(group.unit)
    said = f"your work and that of {', '.join(event.behind)}, which has landed meanwhile, both change {', '.join(event.paths)}"
    group.points["merge"] = (said,)
    move(state, group, Stage.HELD)
    touch_group(state, group, at_us)


def _message_sent(state: TeamState, event: e.MessageSent, at_us: int) -> None:
    message = dict(event.message)
    name: str = message["id"]
    stem = name if name.count("_") == 2 else name.rpartition("_")[0]
    state.same_second = state.same_second + 1 if stem == state.last_message else 1
    state.last_message = stem
    state.messages[event.box].append(message)
    state.known[name] = message
    state.unread.setdefault((event.group, ENDS[event.box][1].value), []).append(message)


def _qa_reported(state: TeamState, event: e.QaReported, at_us: int) -> None:
    group = state.groups[event.group]
    group.test_results = {**group.test_results, **event.test_results}
    if event.passed:
        group.points.pop("qa", None)
        move(state, group, Stage.REVIEW)
    else:
        group.qa_failures += 1
        group.failed_rounds += 1
        group.points["qa"] = event.failures
        develop(state, group, "qa")
    touch_group(state, group, at_us)


def _reviewed(state: TeamState, event: e.Reviewed, at_us: int) -> None:
    group = state.groups[event.group]
    number = len(group.reviews) + 1
    group.reviews.append(Feedback(iteration=number, decision=event.decision, feedback=event.feedback, timestamp=stamp(at_us)))
    group.quality |= event.quality
    if event.decision == "approved":
        group.points.pop("review", None)
        group.then = Stage.MERGE
        move(state, group, Stage.SAVE)
    elif event.decision == "changes_requested":
        group.review_failures += 1
        group.failed_rounds += 1
        group.points["review"] = event.points
        develop(state, group, "review")
    else:
        group.points["guidance"] = event.points
        for blocker in group.blockers:
            if not blocker.resolved:
                blocker.resolved, blocker.resolution = True, event.feedback
        develop(state, group, "unblocked")
    touch_group(state, group, at_us)


def _merge_finished(state: TeamState, event: e.MergeFinished, at_us: int) -> None:
    group = state.groups[event.group]
    group.abandon_launch(at_us, None if event.verdict is MergeVerdict.LANDED else event.verdict.value)
    if event.verdict in (MergeVerdict.CONFLICT, MergeVerdict.RED):
        group.review_failures += 1
        group.failed_rounds += 1
        more = event.conflict_text if event.verdict is MergeVerdict.CONFLICT else event.tail
        group.points["merge"] = (f"{event.detail}\n{more}".strip(),)
        develop(state, group, event.verdict.value)
    else:
        group.merges_failed += event.verdict is MergeVerdict.UNAVAILABLE
        rest(state, group)
    touch_group(state, group, at_us)


def _group_completed(state: TeamState, event: e.GroupCompleted, at_us: int) -> None:
    group = state.groups[event.group]
    state.queue.leave(state.spec.into, group.unit)
    state.at_work.pop(group.unit, None)
    state.completed.append(group.unit)
    group.points.clear()
    group.ended_us, group.merged = at_us, event.commit
    move(state, group, Stage.COMPLETE)
    for name in state.dependents.get(group.unit, ()):
        child = state.groups[name]
        child.missing.discard(group.unit)
        if not child.missing and child.stage is Stage.PENDING and name not in state.ready:
            insort(state.ready, name, key=lambda one: state.groups[one].order)
    for name in state.ready:
        state.groups[name].serialised = False
    for name in state.holds.pop(group.unit, ()):
        held = state.groups[name]
        held.held_for.discard(group.unit)
        if not held.held_for and held.stage is Stage.HELD:
            develop(state, held, "collision")
            held.updated_us = at_us
    if state.pm.stage is Stage.WATCH:
        settle_manager(state)
    touch_group(state, group, at_us)
    touch_plan(state, at_us)


def _statuses_edited(state: TeamState, event: e.StatusesEdited, at_us: int) -> None:
    for name, status in event.tasks.items():
        state.tasks[name].by_hand = status
    for name, status in event.groups.items():
        group = state.groups[name]
        group.turn, group.asking, group.question = None, "", ""
        group.because = {"qa_failed": "qa", "changes_requested": "review"}.get(status, "person")
        group.held_for.clear()
        state.queue.leave(state.spec.into, name)
        move(state, group, STAGES[status])
        group.started_us = None if status == "pending" else at_us if group.started_us is None else group.started_us
        group.ended_us = at_us if status == "complete" else None
        touch_group(state, group, at_us)
    recount(state)
    if event.groups and state.plan.made and not state.pm.asking and state.pm.stage is not Stage.PLAN:
        settle_manager(state)
    touch_plan(state, at_us)


def _imported(state: TeamState, event: e.Imported, at_us: int) -> None:
    for requirement in state.requirements:
        requirement.planned = True
    for name, told in event.groups.items():
        _fill(state.groups[name], told, at_us)
    for name, status in event.tasks.items():
        task = state.tasks.get(name)
        if task is not None and status == "complete" and task_status(state, task) != "complete":
            task.by_hand = status  # All else follows from its group.
    for box, sent in event.messages.items():
        for message in sent:
            _keep(state, box, dict(message))
    state.decisions = [typed.convert(one, Decision) for one in event.decisions]
    state.spawns, state.plans = event.spawns, 1
    state.team_file.iteration, state.pm_file.iteration = event.iteration, event.plan_iteration
    state.started_us = event.started_us if event.started_us is not None else state.started_us
    state.ended_us = event.ended_us
    recount(state)
    settle_manager(state)


def _fill(group: Group, told: ImportedGroup, at_us: int) -> None:
    group.stage = STAGES[told.status]
    group.because = {"qa_failed": "qa", "changes_requested": "review"}.get(told.status, "person")
    group.developer, group.qa, group.tech_lead = told.developer, told.qa, told.tech_lead
    unsaid_us = None if told.filed else at_us
    begun, ended = (unsaid_us if moment is None else moment for moment in (told.started_us, told.ended_us))
    group.started_us = None if told.status == "pending" else begun
    group.ended_us = ended if told.status == "complete" else None
    group.files_modified = told.files_modified
    group.commits = tuple(Commit(*_parted(line)) for line in told.commits)
    group.test_results = {kind: dict(counts) for kind, counts in told.test_results.items()}
    group.reviews = [typed.convert(one, Feedback) for one in told.feedback]
    group.blockers = [typed.convert(one, Blocker) for one in told.blockers]
    group.quality = dict(told.quality)
    if told.status == "changes_requested" and group.reviews:
        group.points["review"] = (group.reviews[-1].feedback,)


def _parted(line: str) -> tuple[str, str]:
    sha, _, subject = line.partition(" - ")
    return sha, subject


def _keep(state: TeamState, box: str, message: dict[str, Any]) -> None:
    state.messages[box].append(message)
    state.known[message["id"]] = message
    if not message.get("read"):
        state.unread.setdefault((message["group_id"], ENDS[box][1].value), []).append(message)


GROUP_FACTS: Facts = {
    e.PlanMade: _plan_made,
    e.GroupSerialised: _group_serialised,
    e.WorkReported: _work_reported,
    e.WorkSaved: _work_saved,
    e.CollisionForeseen: _collision_foreseen,
    e.MessageSent: _message_sent,
    e.QaReported: _qa_reported,
    e.Reviewed: _reviewed,
    e.MergeFinished: _merge_finished,
    e.GroupCompleted: _group_completed,
    e.StatusesEdited: _statuses_edited,
    e.Imported: _imported,
}
