"""The print-outs of a team, all derived from one state: no fact stands in two places that could differ.

Times are those of facts, so that the same state prints the same files. `pm_state.json` alone waits for the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import AskHuman, RunAgent
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.files import beside
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.team.shapes import (
    ActiveAgent,
    BlockerEntry,
    DecisionEntry,
    FeedbackEntry,
    GroupEntry,
    GroupStatus,
    Messages,
    OrchestratorState,
    PhaseEntry,
    PmState,
    QualityMetrics,
    ResultsEntry,
    Rounds,
    TaskEntry,
)
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.state import BOXES, PM, Group, Stage, TeamState
from agent_orchestrator.systems.team.status import (
    agent_of,
    current_phase,
    levels,
    progress_of,
    status_of,
    task_status,
    together,
    waiting_for,
)

FOLDER = "coordination"
PM_STATE = f"{FOLDER}/pm_state.json"
GROUP_STATUS = f"{FOLDER}/group_status.json"
ORCHESTRATOR_STATE = f"{FOLDER}/orchestrator_state.json"
MESSAGES = f"{FOLDER}/messages"
MINUTE_US = 60 * US


def documents(state: TeamState, now_us: int) -> list[Document]:
    """Give all files below `coordination/`."""
    plan = [Document(path=PM_STATE, body=pm_state(state))] if state.plan.made else []
    boxes = [Document(path=f"{MESSAGES}/{box}.json", body=Messages(messages=sent)) for box, sent in state.messages.items()]
    return [
        Document(path=ORCHESTRATOR_STATE, body=orchestrator_state(state)),
        *plan,
        Document(path=GROUP_STATUS, body={name: group_status(state, group) for name, group in state.groups.items()}),
        *boxes,
    ]


def files(spec: TeamSpec, run: str) -> Iterator[str]:
    """List the files of `coordination/` by their names, and where those of an ended team go."""
    yield from (PM_STATE, GROUP_STATUS, ORCHESTRATOR_STATE, *(f"{MESSAGES}/{box}.json" for box in BOXES))
    yield from (*beside(FOLDER), *beside(MESSAGES))
    yield from (f"{FOLDER}/archive/{run}/", f"{FOLDER}/archive/{run}-[0-9]*/", f".agents/runs/{run}/")


def pm_state(state: TeamState) -> PmState:
    """Make `pm_state.json`."""
    groups = list(state.groups.values())
    progress = {group.unit: progress_of(state, group) for group in groups}
    done = len(state.completed)
    return PmState(
        session_id=state.context.run,
        mode="simple" if state.plan.mode == "simple" else "parallel",
        mode_reasoning=state.plan.mode_reasoning or None,
        original_requirements=state.requirements_text,
        all_tasks=[
            TaskEntry(
                id=task.id,
                description=task.description,
                group_id=task.group_id or None,
                status=typed.convert(task_status(state, task), Any),
            )
            for task in state.tasks.values()
        ],
        task_groups=[_group_entry(group, progress[group.unit]) for group in groups],
        execution_phases=_phases(state, progress),
        completed_groups=list(state.completed),
        in_progress_groups=[name for name, status in progress.items() if status == "in_progress"],
        pending_groups=[name for name, status in progress.items() if status in ("pending", "assigned")],
        iteration=state.pm_file.iteration,
        last_update=stamp(state.pm_file.updated_us),
        completion_percentage=round(100 * done / len(groups), 1) if groups else 0.0,
        estimated_time_remaining_minutes=_remaining_minutes(state),
    )


def _group_entry(group: Group, progress: Any) -> GroupEntry:
    return GroupEntry(
        id=group.unit,
        name=group.name,
        tasks=list(group.tasks),
        files_affected=list(group.files_affected),
        branch_name=group.branch_name,
        status=progress,
        can_parallel=group.can_parallel,
        depends_on=list(group.depends_on),
        complexity=typed.convert(group.complexity, Any),
        estimated_effort_minutes=_number(group.estimated_effort_minutes),
    )


def _phases(state: TeamState, progress: dict[str, str]) -> list[PhaseEntry]:
    return [
        PhaseEntry(
            phase_number=number,
            group_ids=[group.unit for group in level],
            parallel_count=min(len(level), state.spec.max_parallel) if state.plan.mode == "parallel" else 1,
            status=typed.convert(together(progress[group.unit] for group in level), Any),
        )
        for number, level in enumerate(levels(state), 1)
    ]


def _remaining_minutes(state: TeamState) -> float | None:
    """Sum the estimates of what is left, corrected by how long what is done really took; unknown without estimates."""
    left = [group for group in state.groups.values() if group.stage is not Stage.COMPLETE]
    if any(group.estimated_effort_minutes is None for group in left):
        return None
    done = [state.groups[name] for name in state.completed]
    known = [group for group in done if group.estimated_effort_minutes and None not in (group.started_us, group.ended_us)]
    planned = sum(group.estimated_effort_minutes or 0.0 for group in known)
    took = sum(((group.ended_us or 0) - (group.started_us or 0)) / MINUTE_US for group in known)
    factor = took / planned if planned else 1.0
    minutes = 0.0
    for group in left:
        spent = (state.pm_file.updated_us - group.started_us) / MINUTE_US if group.started_us is not None else 0.0
        minutes += max(0.0, (group.estimated_effort_minutes or 0.0) * factor - spent)
    beside = min(len(left), state.spec.max_parallel) if state.plan.mode == "parallel" else 1
    return _number(round(minutes / max(1, beside), 1))


def group_status(state: TeamState, group: Group) -> GroupStatus:
    """Make one group of `group_status.json`."""
    start, end = group.started_us, group.ended_us
    return GroupStatus(
        group_id=group.unit,
        group_name=group.name,
        status=typed.convert(status_of(state, group), Any),
        current_agent=typed.convert(agent_of(state, group.unit), Any),
        iterations=Rounds(developer=group.developer, qa=group.qa, tech_lead=group.tech_lead),
        start_time=stamp(start) if start is not None else None,
        end_time=stamp(end) if end is not None else None,
        duration_minutes=_number(round((end - start) / MINUTE_US, 1)) if start is not None and end is not None else None,
        branch_name=group.branch_name,
        files_modified=list(group.files_modified),
        commits=[str(commit) for commit in group.commits],
        test_results=typed.convert(group.test_results, ResultsEntry),
        tech_lead_feedback=[typed.convert(msgspec.to_builtins(one), FeedbackEntry) for one in group.reviews],
        blockers=[
            BlockerEntry(description=one.description, resolved=one.resolved, resolution=one.resolution) for one in group.blockers
        ],
        quality_metrics=_quality(group),
        last_update=stamp(group.updated_us),
    )


def _quality(group: Group) -> QualityMetrics:
    reviews = [one.decision for one in group.reviews if one.decision != "unblocked"]
    issues = group.quality.get("security_issues_count")
    return QualityMetrics(
        code_quality_score=group.quality.get("code_quality_score"),
        security_issues_count=int(issues) if issues is not None else None,
        first_pass_approval=reviews[0] == "approved" if reviews else None,
    )


def orchestrator_state(state: TeamState) -> OrchestratorState:
    """Make `orchestrator_state.json`."""
    life = state.lifecycle
    status: Any = "running" if not life.ended else "completed" if life.stop is StopReason.COMPLETED else "error"
    agents = [effect for effect in state.doing if isinstance(effect, RunAgent) and effect.unit not in state.doing.holds]
    return OrchestratorState(
        session_id=state.context.run,
        current_phase=typed.convert(current_phase(state), Any),
        active_agents=[
            ActiveAgent(
                agent_type=effect.role,
                group_id=effect.unit if effect.unit != PM else None,
                spawned_at=stamp(state.unit(effect.unit).spawned_us),
            )
            for effect in agents
        ],
        iteration=state.team_file.iteration,
        total_spawns=state.spawns,
        decisions_log=[
            DecisionEntry(iteration=one.iteration, decision=one.decision, reasoning=one.reasoning, timestamp=one.timestamp)
            for one in state.decisions
        ],
        status=status,
        start_time=stamp(state.started_us),
        end_time=stamp(state.ended_us) if state.ended_us is not None else None,
        last_update=stamp(state.team_file.updated_us),
    )


def _number(value: float | None) -> float | None:
    """Give whole numbers without a fraction, as people write them."""
    return int(value) if value is not None and float(value).is_integer() else value


def summary(state: TeamState) -> Summary:
    """Give the team in one line."""
    life = state.lifecycle
    status, stop, detail = life.status, life.stop, life.detail
    asked = [effect for effect in state.doing if isinstance(effect, AskHuman)]
    if life.phase is Phase.RUNNING and asked and len(asked) == len(state.doing):
        status, stop = "waiting", StopReason.WAITING_ON_HUMAN
        detail = "an answer: " + "; ".join(" ".join(effect.question.split()).rstrip(".") for effect in asked)[:300]
    return Summary(
        status=status,
        stop=stop,
        detail=detail,
        done=len(state.completed),
        total=len(state.groups),
        failed=sum(group.stage is not Stage.COMPLETE and bool(group.asking) for group in state.groups.values()),
        doing=tuple(effect.unit for effect in state.doing)[:8],
        facts={"phase": current_phase(state), "requirements": state.spec.requirements[:200]},
    )


def details(state: TeamState) -> dict[str, Any]:
    """Give all that the files do not carry."""
    spec = state.spec
    return {
        **state.lifecycle.details(),
        "into": spec.into,
        "check": spec.check,
        "testing": spec.testing.value,
        "limits": {
            "max_parallel": spec.max_parallel,
            "max_attempts": spec.max_attempts,
            "max_qa_rounds": spec.max_qa_rounds,
            "max_review_rounds": spec.max_review_rounds,
        },
        "requirements": [
            {"text": one.text, "check": one.check, "met_by": one.met_by or None, "evidence": one.evidence}
            for one in state.requirements
        ],
        "questions": [
            {"unit": effect.unit, "about": state.unit(effect.unit).asking, "question": effect.question}
            for effect in state.doing
            if isinstance(effect, AskHuman)
        ],
        "clarifications": [{"question": asked, "answer": said} for asked, said in state.clarifications],
        "merge_queue": list(state.queue.line(spec.into)),
        "sent_back": state.sent_back,
        "doing": state.doing.details(),
        "warnings": [text for unit in (state.pm, *state.groups.values()) for text in unit.warnings],
        "steps": {name: _unit_details(state, name) for name in (PM, *state.groups)},
    }


def _unit_details(state: TeamState, name: str) -> dict[str, Any]:
    unit = state.unit(name)
    found: dict[str, Any] = {
        "stage": unit.stage.value,
        "waits": waiting_for(state, name),
        "error": unit.error,
        "open_points": {who: list(points) for who, points in unit.points.items()},
        **unit.details(),
    }
    if isinstance(unit, Group):
        found |= {
            "merged": unit.merged,
            "rounds": {"qa_failures": unit.qa_failures, "review_failures": unit.review_failures, "failed": unit.failed_rounds},
        }
    return found
