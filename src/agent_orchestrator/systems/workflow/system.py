"""The workflow system as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


class WorkflowSystem:
    """The workflow system as the engine sees it."""

    name = "workflow"
    spec_type: type[Any] = WorkflowSpec
    event_type: Any = WorkflowEvent
    forms = FORMS

    def fresh(self, spec: WorkflowSpec, context: Context) -> WorkflowState:
        """All steps PENDING."""
        return WorkflowState(spec, context)

    def begin(self, spec: WorkflowSpec, context: Context) -> Sequence[WorkflowEvent]:
        """The run exists."""
        return [RunBegan(workflow=spec.name, steps=len(spec.steps))]

    decide = staticmethod(decide)
    advance = staticmethod(advance)
    evolve = staticmethod(evolve)
    documents = staticmethod(documents)
    files = staticmethod(files)
    summary = staticmethod(summary)
    details = staticmethod(details)

    def faults(self, path: str, document: Any) -> list[str]:
        """What is wrong with an edited `run_state.json`."""
        return check_state_document(document)


WORKFLOW = WorkflowSystem()

_: System = WORKFLOW
