"""What a person's answer means, whichever way it came."""

from __future__ import annotations

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.limits import TAIL_CHARS
from agent_orchestrator.systems.phases.decide.reviewing import settle_finding
from agent_orchestrator.systems.phases.decide.settling import interventions, replanned
from agent_orchestrator.systems.phases.events import (
    CheckAbandoned,
    Concluded,
    HumanJudged,
    PhasesEvent,
    PlanApproved,
    TaskRetried,
    TasksSkipped,
)
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import TaskWork, Work


def human_answered(state: PhasesState, unit: str, *, approved: bool, comments: str) -> list[PhasesEvent]:
    """The answer as a fact, and what follows."""
    work = state.works[unit]
    said = comments.strip()[:TAIL_CHARS]
    judged = HumanJudged(step=unit, about=work.asking, approved=approved, comments=said)
    return [judged, *_follows(state, work, approved=approved, said=said)]


def _follows(state: PhasesState, work: Work, *, approved: bool, said: str) -> list[PhasesEvent]:
    because = f": {said}" if said else ""
    match work.asking:
        case "plan":
            return [PlanApproved()] if approved else [_failed(f"the plan was rejected{because}")]
        case "questions":
            return [] if approved else [_failed(f"the planner's questions were not answered{because}")]
        case "replan" if work.verdict is not None:
            if approved:
                return replanned(work, "approved by a person")
            return interventions(work.verdict, f"a person rejected the change of the plan{because}")
        case "task" if isinstance(work, TaskWork):
            return [TaskRetried(task=work.task, comments=said)] if approved else [skip(state, work.task, said)]
        case "review" if not approved:
            return [_failed(f"the work was rejected{because}")]
        case "agent" if not approved and work.purpose == "repair":
            return [settle_finding(state, work, f"a person goes on without it{because}")]
        case "agent" if not approved:
            return [CheckAbandoned(step=work.unit, why=f"a person goes on without it{because}")]
        case _:
            return []


def skip(state: PhasesState, task: str, said: str) -> TasksSkipped:
    """A task is skipped with everything that depends on it."""
    gone = {task}
    for one in state.plan.values():
        if gone & set(one.needs) and one.id not in state.completed and one.id not in state.skipped:
            gone.add(one.id)
    ordered = tuple(one for one in state.plan if one in gone)
    return TasksSkipped(tasks=ordered, why=said or state.failures.get(task) or "a person said so")


def _failed(detail: str) -> Concluded:
    return Concluded(stop=StopReason.FAILED, detail=detail)
