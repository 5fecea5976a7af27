"""The one fact about files that were taken over: how far the groups of the plan before it were, and what was said."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.inputs import Commit
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.systems.team import events as e
from agent_orchestrator.systems.team.evolve.groups import STAGES
from agent_orchestrator.systems.team.evolve.marks import recount, settle_manager
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import ImportedGroup
from agent_orchestrator.systems.team.state import Blocker, Decision, Feedback, Group, TeamState
from agent_orchestrator.systems.team.status import task_status


def _imported(state: TeamState, event: e.Imported, at_us: int) -> None:
    for requirement in state.requirements:
        requirement.planned = True
    for name, told in event.groups.items():
        _fill(state.groups[name], told, at_us)
    for name, status in event.tasks.items():
        task = state.tasks.get(name)
        if task is not None and status == "complete" and task_status(state, task) == "in_progress":
            task.by_hand = status  # All else follows from its group.
    for box, sent in event.messages.items():
        for message in sent:
            _keep(state, box, dict(message))
    state.decisions = [msgspec.convert(one, Decision) for one in event.decisions]
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
    begun = told.started_us if told.started_us is not None else at_us
    group.started_us = None if told.status == "pending" else begun
    group.ended_us = (told.ended_us if told.ended_us is not None else at_us) if told.status == "complete" else None
    group.files_modified = told.files_modified
    group.commits = tuple(Commit(*_parted(line)) for line in told.commits)
    group.test_results = {kind: dict(counts) for kind, counts in told.test_results.items()}
    group.reviews = [msgspec.convert(one, Feedback) for one in told.feedback]
    group.blockers = [msgspec.convert(one, Blocker) for one in told.blockers]
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


IMPORT_FACTS: Facts = {e.Imported: _imported}
