"""The one place where a failed check, a report's `gate_failure` and a person's rejection meet.

All three are decisions, not failures: they loop back or fail the step, and are never retried.
"""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.workflow.events import (
    CheckQueued,
    GateFailed,
    HumanAsked,
    ItemCompleted,
    LoopedBack,
    StepCompleted,
    StepFailed,
    WorkflowEvent,
)
from agent_orchestrator.systems.workflow.state import WorkflowState

LOGS_TOLD_MAX = 20
ARTIFACTS_TOLD_MAX = 100
"""The most of a report that the next iteration is told: feedback stands in the journal and in a prompt."""


def follow_success(state: WorkflowState, unit: str) -> list[WorkflowEvent]:
    """The agent did its work: the next item, the person, the check, or the end of the step."""
    step, work = state.specs[unit], state.works[unit]
    if work.items is not None and work.item + 1 < len(work.items):
        return [ItemCompleted(step=unit, item=work.item)]
    if step.human_in_the_loop:
        return [HumanAsked(step=unit, effect=state.name_effect(unit, "human"), after=work.agent_launch)]
    return accept_work(state, unit)


def accept_work(state: WorkflowState, unit: str) -> list[WorkflowEvent]:
    """The work is accepted as far as words go; a check has the last one."""
    return [CheckQueued(step=unit)] if state.specs[unit].check else [StepCompleted(step=unit)]


def fail_gate(state: WorkflowState, unit: str, why: str, said: dict[str, Any]) -> list[WorkflowEvent]:
    """The gate says no: loop back, or fail where there is no way back or it was gone too often."""
    step, iteration = state.specs[unit], state.steps[unit].iteration_count
    error = f"Gate failure: {why}"
    if step.loop_back_to is None:
        return [StepFailed(step=unit, error=error, cause="gate")]
    if iteration + 1 >= state.spec.max_iterations:
        return [StepFailed(step=unit, error=f"{error} (iteration limit {state.spec.max_iterations} reached)", cause="limit")]
    feedback = {"iteration": iteration, "step": unit, "error": error, **said}
    return [GateFailed(step=unit, error=error), LoopedBack(step=unit, target=step.loop_back_to, feedback=feedback)]


def gate_failure_of(report: Report) -> str | None:
    """Give the reason why an agent's report says that the gate failed, or None when it does not say so."""
    value = report.fields.get("gate_failure")
    if value in (None, False, ""):
        return None
    if isinstance(value, str):
        return clip(value)
    last_log = next((line for line in reversed(report.logs) if line.strip()), "")
    return clip(report.summary) or clip(last_log) or "the report says so"


def tell_report(report: Report) -> dict[str, Any]:
    """Give the part of a report that the next iteration is told."""
    logs = [clip(line) for line in report.logs[-LOGS_TOLD_MAX:]]
    said = {"summary": clip(report.summary), "logs": logs, "artifacts": list(report.artifacts[:ARTIFACTS_TOLD_MAX])}
    kept = {key: value for key, value in said.items() if value}
    return {"report": kept} if kept else {}
