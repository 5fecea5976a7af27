"""Shows a workflow run: the seed's state file, the line in `orc list`, and the rest for `orc show --json`."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import US, iso
from agent_orchestrator.systems.workflow.effects import run_directory
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import StepDocument, StepWork, WorkflowState

DOING_SHOWN = 5


class RunDocument(msgspec.Struct, kw_only=True):
    """`run_state.json`: these fields, in this order. The steps are the state's own."""

    run_id: str
    workflow_name: str
    repo_dir: str
    reports_dir: str
    manual_inputs_dir: str
    created_at: str
    updated_at: str
    steps: dict[str, StepDocument]


def documents(state: WorkflowState, now_us: int) -> list[Document]:
    """The run's print-outs; `updated_at` is the time of the last fact, so that the same state prints the same file."""
    context = state.context
    directory = run_directory(context.run)
    body = RunDocument(
        run_id=context.run,
        workflow_name=state.spec.name,
        repo_dir=context.workdir,
        reports_dir=f"{context.home}/{directory}/reports",
        manual_inputs_dir=f"{context.home}/{directory}/manual_inputs",
        created_at=iso(context.created_us),
        updated_at=iso(state.updated_us),
        steps=state.steps,
    )
    return [Document(path=f"{directory}/run_state.json", body=body)]


def files(spec: WorkflowSpec, run: str) -> tuple[str, ...]:
    """The run's directory."""
    return (f"{run_directory(run)}/",)


def summary(state: WorkflowState) -> Summary:
    """The run in one line, at a cost that does not grow with it."""
    life = state.lifecycle
    status, stop, detail = life.status, life.stop, life.detail
    if life.running and state.doing and len(state.doing) == len(state.asking) + len(state.gated):
        status = "waiting"
        if state.asking:
            stop = StopReason.WAITING_ON_HUMAN
        waiting = state.asking or state.gated
        detail = f"{'approval' if state.asking else 'gates'}: {', '.join(islice(waiting, DOING_SHOWN))}"
    return Summary(
        status=status,
        stop=stop,
        detail=detail,
        done=state.dag.finished,
        total=len(state.steps),
        failed=len(state.failed),
        doing=tuple(effect.unit for effect in islice(state.doing, DOING_SHOWN)),
    )


def details(state: WorkflowState) -> dict[str, Any]:
    """Give all that the state file does not carry."""
    return {
        **state.lifecycle.details(),
        "max_parallel": state.spec.max_parallel,
        "max_attempts": state.spec.max_attempts,
        "max_iterations": state.spec.max_iterations,
        "doing": state.doing.details(),
        "steps": {unit: _step_details(state, unit, work) for unit, work in state.works.items()},
    }


def _step_details(state: WorkflowState, unit: str, work: StepWork) -> dict[str, Any]:
    return {
        "cause": state.failed.get(unit),
        "due": state.due.get(unit),
        **work.details(),
        "spent_s": work.spent_us / US,
        "item": work.item if work.items is not None else None,
        "items": len(work.items) if work.items is not None else None,
        "answer": work.answer,
        "summary": work.summary,
    }
