"""The phases system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.events import BudgetWarned, Event
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.phases.advance import advance
from agent_orchestrator.systems.phases.decide import decide
from agent_orchestrator.systems.phases.decide.edits import read_state_document
from agent_orchestrator.systems.phases.documents import STATE_FILE, checkpoint_name, details, documents, files, summary
from agent_orchestrator.systems.phases.events import (
    AgentStarted,
    Imported,
    IterationFinished,
    LearningsRecorded,
    PhaseCompleted,
    PhasesEvent,
    PlanApproved,
    ReviewStarted,
    RunPlanned,
    SupervisorChecked,
    TaskCompleted,
)
from agent_orchestrator.systems.phases.evolve import evolve
from agent_orchestrator.systems.phases.reports import FORMS
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState


def _begin(spec: PhasesSpec, context: Context) -> Sequence[PhasesEvent]:
    return [RunPlanned(name=spec.plan.name, phases=len(spec.plan.phases), tasks=len(spec.plan.tasks))]


def _faults(path: str, document: Any) -> list[str]:
    """List what is wrong with an edited state file; the other files are derived and simply written again."""
    if not path.endswith(f"/{STATE_FILE}"):
        return []
    read = read_state_document(document)
    return read if isinstance(read, list) else []


def _points(event: PhasesEvent) -> tuple[str, ...]:
    """Name the plan that was approved, and a task that is done with its checkpoint."""
    if isinstance(event, TaskCompleted):
        return checkpoint_name(event.number).removesuffix(".json"), event.task
    return ("plan",) if isinstance(event, PlanApproved) else ()


def _imported_points(event: PhasesEvent) -> tuple[str, ...]:
    """Name the checkpoints that were made elsewhere, and their tasks."""
    if not isinstance(event, Imported):
        return ()
    files = [str(one["state_snapshot"]).removesuffix(".json") for one in event.checkpoints]
    return (*files, *(str(one["task"]) for one in event.checkpoints))


MOMENTS: dict[type[Event], bool] = {
    **dict.fromkeys((AgentStarted, IterationFinished, LearningsRecorded, SupervisorChecked, TaskCompleted, BudgetWarned), False),
    **dict.fromkeys((PlanApproved, PhaseCompleted, ReviewStarted), True),
}
"""The changes after which seed 001 says that the state file is written."""

PHASES = System(
    name="phases",
    spec_type=PhasesSpec,
    event_type=PhasesEvent,
    forms=FORMS,
    fresh=PhasesState,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    moments=MOMENTS,
    files=files,
    summary=summary,
    details=details,
    faults=_faults,
    points=_points,
    imported_points=_imported_points,
)
