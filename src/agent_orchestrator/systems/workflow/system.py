"""The workflow system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.workflow.advance import advance
from agent_orchestrator.systems.workflow.decide import decide
from agent_orchestrator.systems.workflow.decide.edits import check_state_document
from agent_orchestrator.systems.workflow.documents import details, documents, files, summary
from agent_orchestrator.systems.workflow.effects import FORMS
from agent_orchestrator.systems.workflow.events import (
    GateFailed,
    HumanAsked,
    HumanJudged,
    LoopedBack,
    RetryScheduled,
    RunBegan,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepsReset,
    StepStarted,
    WorkflowEvent,
)
from agent_orchestrator.systems.workflow.evolve import evolve
from agent_orchestrator.systems.workflow.snapshot import SNAPSHOTS
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import WorkflowState


def _begin(spec: WorkflowSpec, context: Context) -> Sequence[WorkflowEvent]:
    return [RunBegan(workflow=spec.name, steps=len(spec.steps))]


def _points(event: WorkflowEvent) -> tuple[str, ...]:
    """Name a step that is over, however it ended."""
    return (event.step,) if isinstance(event, StepCompleted | StepFailed | GateFailed) else ()


MOMENTS: dict[type[Event], bool] = {
    **dict.fromkeys((StepStarted, StepCompleted, StepSkipped, StepFailed, RetryScheduled, HumanAsked), False),
    **dict.fromkeys((GateFailed, LoopedBack, StepsReset, HumanJudged), True),
}
"""The changes after which seed 000 says that the state file is written."""

WORKFLOW = System(
    name="workflow",
    spec_type=WorkflowSpec,
    event_type=WorkflowEvent,
    forms=FORMS,
    fresh=WorkflowState,
    begin=_begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    moments=MOMENTS,
    files=files,
    summary=summary,
    details=details,
    faults=lambda path, document: check_state_document(document),
    points=_points,
    snapshots=SNAPSHOTS,
)
