"""Says what the outcome of a step's effect means: done, once more, or no."""

from __future__ import annotations

import posixpath
from typing import Any

import msgspec

from agent_orchestrator.core.failure import Failure, FailureKind, invalid_report
from agent_orchestrator.core.forms import read_fields
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, FileRead, Usage
from agent_orchestrator.core.judging import After, Worth, judge_agent, judge_check, judge_session, retry_us, say_check_failure
from agent_orchestrator.core.launch_events import agent_fields, check_fields
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.workflow.decide.gates import accept_work, fail_gate, follow_success, gate_failure_of, tell_report
from agent_orchestrator.systems.workflow.effects import Gate
from agent_orchestrator.systems.workflow.events import (
    AgentFinished,
    CheckFinished,
    CheckQueued,
    HumanJudged,
    RetryScheduled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    WorkflowEvent,
)
from agent_orchestrator.systems.workflow.items import items_read
from agent_orchestrator.systems.workflow.state import WorkflowState

USAGE_METRICS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")

_TIMEOUTS = {FailureKind.TIMEOUT, FailureKind.IDLE}


def agent_ended(state: WorkflowState, outcome: AgentEnded, now_us: int) -> list[WorkflowEvent]:
    """The step's agent is over."""
    unit = unit_of(outcome.effect)
    failure = judge_session(outcome.failure, state.doing.of(unit)) if outcome.failure is not None else None
    report = outcome.report
    if failure is None and report is not None:
        failure = _check_report(report)
    finished = _make_finished(state, unit, outcome, failure)
    if report is not None and (failure is None or failure.kind is FailureKind.REPORTED):
        gate = gate_failure_of(report)
        if gate is not None:
            return [finished, *fail_gate(state, unit, gate, tell_report(report))]
    if failure is None:
        return [finished, *follow_success(state, unit)]
    return [finished, _follow_failure(state, unit, outcome.effect, failure, now_us)]


def check_ended(state: WorkflowState, outcome: CheckEnded) -> list[WorkflowEvent]:
    """The step's check is over."""
    unit = unit_of(outcome.effect)
    command = state.specs[unit].check or ""
    worth = judge_check(outcome, state.works[unit].reruns)
    finished = CheckFinished(step=unit, command=command, tree=outcome.tree_after, **check_fields(outcome))
    if worth is Worth.STOPPED:
        return [finished, _interrupt(state, unit, check=True)]
    if worth is Worth.AGAIN:
        return [finished, CheckQueued(step=unit, again=True)]
    if worth is Worth.PASSED:
        return [finished, StepCompleted(step=unit)]
    why = f"check `{command}` {say_check_failure(outcome, moved=finished.moved)}"
    said = {"check": {"command": command, "exit_code": outcome.exit_code, "tail": outcome.tail}}
    return [finished, *fail_gate(state, unit, why, said)]


def human_answered(state: WorkflowState, unit: str, yes: bool, comments: str) -> list[WorkflowEvent]:
    """A person judged the step, by file or by directive."""
    fact = HumanJudged(step=unit, approved=yes, comments=clip(comments))
    if yes:
        return [fact, *accept_work(state, unit)]
    return [fact, *fail_gate(state, unit, clip(comments) or "rejected by a person", {"comments": clip(comments)})]


def file_read(state: WorkflowState, outcome: FileRead) -> list[WorkflowEvent]:
    """The file with the items of the step's loop was read, or could not be."""
    failure = outcome.failure
    text = outcome.text if failure is None else None
    return items_read(state, unit_of(outcome.effect), text, failure.message if failure is not None else "")


def stringify(metrics: dict[str, Any]) -> dict[str, str]:
    """Metrics as the state file has them: numbers as JSON prints them, all else that is not text as compact JSON."""
    return {key: value if isinstance(value, str) else msgspec.json.encode(value).decode() for key, value in metrics.items()}


def inside(workdir: str, path: str) -> str | None:
    """The artifact relative to the working tree, or None when it lies outside."""
    root = posixpath.join(posixpath.normpath(workdir), "")
    whole = posixpath.normpath(posixpath.join(root, path))
    return whole[len(root) :] or None if whole.startswith(root) and path.strip() and "\0" not in path else None


def _make_finished(state: WorkflowState, unit: str, outcome: AgentEnded, failure: Failure | None) -> AgentFinished:
    report = outcome.report
    metrics = _read_usage(outcome.usage) if outcome.usage is not None and state.specs[unit].loop is None else {}
    tail = outcome.tail if failure is not None else ""
    if report is None:
        fields = agent_fields(outcome, failure)
        return AgentFinished(step=unit, metrics=metrics, tail=tail, session=outcome.session, **fields)
    kept, refused = [], []
    for artifact in report.artifacts:
        relative = inside(state.context.workdir, artifact)
        if relative is None:
            refused.append(f"the artifact {clip(artifact)!r} was refused: it is not inside the working tree")
        else:
            kept.append(relative)
    return AgentFinished(
        step=unit,
        reported=True,
        artifacts=tuple(kept),
        metrics=metrics | stringify(report.metrics),
        logs=report.logs,
        summary=clip(report.summary),
        tail=tail,
        session=outcome.session,
        **agent_fields(outcome, failure, *refused),
    )


def _read_usage(usage: Usage) -> dict[str, str]:
    """Give the usage of a launch as metrics, beside the agent's own; a step with items has one launch each."""
    known = {name: getattr(usage, name) for name in USAGE_METRICS}
    return stringify({name: value for name, value in known.items() if value is not None})


def _check_report(report: Report) -> Failure | None:
    """A gate_failure that is neither a yes nor a no nor a sentence is not guessed at."""
    try:
        read_fields(report, Gate)
    except msgspec.ValidationError:
        said = clip(msgspec.json.encode(report.fields["gate_failure"]).decode())[:80]
    else:
        return None
    message = f"the report's gate_failure is {said}; it must be true, false or a text"
    return invalid_report(message)


def _follow_failure(state: WorkflowState, unit: str, effect: EffectId, failure: Failure, now_us: int) -> WorkflowEvent:
    attempt = state.steps[unit].attempts
    after = judge_agent(failure, attempt, state.spec.attempts_of(state.specs[unit]))
    if after is After.GOES_ON:
        if failure.kind is FailureKind.STOPPED:
            return _interrupt(state, unit)
        return StepInterrupted(step=unit, error=failure.message)
    if after is After.RETRY:
        until_us = retry_us(attempt, effect, now_us, failure)
        return RetryScheduled(step=unit, effect=state.name_effect(unit, "wait"), until_us=until_us, error=failure.message)
    return StepFailed(step=unit, error=failure.message, cause="timed_out" if failure.kind in _TIMEOUTS else "agent")


def _interrupt(state: WorkflowState, unit: str, *, check: bool = False) -> StepInterrupted:
    return StepInterrupted(step=unit, error=f"interrupted: {state.lifecycle.detail or 'stopped'}", check=check)
