"""The workflow system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.system import Context, System
from agent_orchestrator.systems.workflow.advance import advance
from agent_orchestrator.systems.workflow.decide import decide
from agent_orchestrator.systems.workflow.decide.edits import check_state_document
from agent_orchestrator.systems.workflow.documents import details, documents, files, summary
from agent_orchestrator.systems.workflow.effects import FORMS
from agent_orchestrator.systems.workflow.events import RunBegan, WorkflowEvent
from agent_orchestrator.systems.workflow.evolve import evolve
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import WorkflowState


def _begin(spec: WorkflowSpec, context: Context) -> Sequence[WorkflowEvent]:
    return [RunBegan(workflow=spec.name, steps=len(spec.steps))]


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
    files=files,
    summary=summary,
    details=details,
    faults=lambda path, document: check_state_document(document),
)
