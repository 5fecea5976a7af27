"""Says what the outcome of a bead's effect means: done, once more, or no."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.forms import read_fields
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, CheckpointEnded, MergeEnded, TimerFired, Usage
from agent_orchestrator.core.judging import (
    After,
    Worth,
    judge_agent,
    judge_attempt,
    judge_check,
    judge_session,
    retry_us,
    say_check_failure,
    say_exit,
)
from agent_orchestrator.core.launch_events import agent_fields, check_fields, launch_fields
from agent_orchestrator.core.limits import ERROR_LINE_CHARS
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.swarm.effects import BeadReport
from agent_orchestrator.systems.swarm.events import (
    AgentFinished,
    AttemptEnded,
    ClosingFinished,
    LaunchInterrupted,
    MergeFinished,
    SavingFinished,
    SwarmEvent,
    VerificationFinished,
    VerificationQueued,
    WaitEnded,
    WaitStarted,
)
from agent_orchestrator.systems.swarm.records import ABORTED, BUDGET_EXHAUSTED, AttemptStatus, AttemptVerdict
from agent_orchestrator.systems.swarm.spec import OUTPUT_SHOWN_CHARS
from agent_orchestrator.systems.swarm.state import SwarmState

TIMED_OUT_EXIT = 124
KILLED = 128
SIGNALS = 64

_NAMED = {
    FailureKind.REPORTED: "reported-failed",
    FailureKind.REPORT_MISSING: "report-invalid",
    FailureKind.REPORT_INVALID: "report-invalid",
    FailureKind.OUTPUT_LIMIT: "output-limit",
    FailureKind.LOST: "lost",
    FailureKind.LAUNCH: "launch-failed",
    FailureKind.SPEC: "launch-failed",
    FailureKind.BUDGET: BUDGET_EXHAUSTED,
    FailureKind.STOPPED: ABORTED,
}
_TIMEOUTS = (FailureKind.TIMEOUT, FailureKind.IDLE)


def agent_ended(state: SwarmState, outcome: AgentEnded, now_us: int) -> list[SwarmEvent]:
    """The bead's agent is over."""
    bead = unit_of(outcome.effect)
    failure = judge_session(outcome.failure, state.doing.of(bead))
    finished = _make_finished(bead, outcome, failure)
    if failure is None:
        if state.specs[bead].verify is not None:
            return [finished, VerificationQueued(bead=bead)]
        return [finished, _done(state, bead, finished.summary, outcome.exit_code)]
    tried = _count_attempts(state, bead)
    after = judge_agent(failure, tried, state.specs[bead].max_attempts)
    if after is After.GOES_ON:
        return [finished, LaunchInterrupted(bead=bead, due="agent", why=failure.message)]
    effect = state.doing.of(bead)
    limit_s = state.specs[bead].timeout_s
    if failure.kind is FailureKind.IDLE and isinstance(effect, RunAgent) and effect.idle_timeout_s is not None:
        limit_s = effect.idle_timeout_s
    verdict = AttemptVerdict(
        status=AttemptStatus.TIMEOUT if failure.kind in _TIMEOUTS else AttemptStatus.FAILED,
        reason=finished.summary or failure.message,
        failure_reason=name_failure(failure.kind, outcome.exit_code, limit_s),
        exit_code=TIMED_OUT_EXIT if failure.kind in _TIMEOUTS else outcome.exit_code,
    )
    return [finished, *_follow_failure(state, bead, verdict, after, retry_us(tried, outcome.effect, now_us, failure))]


def check_ended(state: SwarmState, outcome: CheckEnded, now_us: int) -> list[SwarmEvent]:
    """The bead's verification is over, or the tracker has answered."""
    bead = unit_of(outcome.effect)
    if outcome.effect.endswith(".close"):
        return _follow_closing(bead, outcome)
    failure, held = outcome.failure, state.beads[bead]
    # Where several work in one tree, it moves without anybody meddling with the evidence.
    shared = state.spec.shared
    worth = judge_check(outcome, held.reruns, shared=shared)
    finished = VerificationFinished(bead=bead, tree=outcome.tree_after, **check_fields(outcome, shared=shared))
    if failure is not None and worth is Worth.STOPPED:
        return [finished, LaunchInterrupted(bead=bead, due="verify", why=failure.message)]
    if worth is Worth.AGAIN:
        return [finished, VerificationQueued(bead=bead, again=True)]
    if worth is Worth.PASSED:
        return [finished, _done(state, bead, held.summary, held.exit_code)]
    reason = f"`{state.specs[bead].verify}` {say_check_failure(outcome, moved=finished.moved)}"
    verdict = AttemptVerdict(
        status=AttemptStatus.FAILED, reason=reason, failure_reason="verification-failed", exit_code=held.exit_code
    )
    tried = _count_attempts(state, bead)
    after = judge_attempt(tried, state.specs[bead].max_attempts)
    return [finished, *_follow_failure(state, bead, verdict, after, retry_us(tried, outcome.effect, now_us))]


def timer_fired(state: SwarmState, outcome: TimerFired) -> list[SwarmEvent]:
    """The wait is over, or what a person stopped is gone."""
    bead = unit_of(outcome.effect)
    stopping = state.beads[bead].stopping
    if stopping is None:
        return [WaitEnded(bead=bead)]
    return [AttemptEnded(bead=bead, verdict=stop_verdict(stopping))]


def stop_verdict(why: str) -> AttemptVerdict:
    """The verdict on an attempt that a person ended."""
    return AttemptVerdict(status=AttemptStatus.FAILED, reason=f"stopped: {why}", failure_reason=ABORTED)


def name_failure(kind: FailureKind, exit_code: int | None, limit_s: float) -> str:
    """The structured reason of a record."""
    if kind in _TIMEOUTS:
        return f"timeout-{limit_s:g}s"
    if kind in _NAMED:
        return _NAMED[kind]
    if exit_code is not None and KILLED < exit_code <= KILLED + SIGNALS:
        return f"signal-{exit_code - KILLED}"
    return f"exit-{exit_code}" if exit_code else kind.value.replace("_", "-")


def _make_finished(bead: str, outcome: AgentEnded, failure: Failure | None) -> AgentFinished:
    report, usage = outcome.report, outcome.usage
    summary = (_reason(report) or report.summary) if report is not None else ""
    return AgentFinished(
        bead=bead,
        summary=clip(summary),
        output=outcome.tail[-OUTPUT_SHOWN_CHARS:],
        session=outcome.session,
        cost_usd=usage.cost_usd if usage is not None else None,
        tokens=_tokens(usage),
        **agent_fields(outcome, failure),
    )


def _reason(report: Report) -> str:
    """A reason that is no text is left out: the word and the exit code speak for a bead."""
    try:
        return read_fields(report, BeadReport).reason.strip()
    except msgspec.ValidationError:
        return ""


def _tokens(usage: Usage | None) -> int | None:
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _done(state: SwarmState, bead: str, summary: str, exit_code: int | None) -> AttemptEnded:
    reason = summary or f"Completed: {state.specs[bead].title[:ERROR_LINE_CHARS]}"
    return AttemptEnded(bead=bead, verdict=AttemptVerdict(status=AttemptStatus.DONE, reason=reason, exit_code=exit_code))


def _count_attempts(state: SwarmState, bead: str) -> int:
    """Count the attempts of this dispatch; those of earlier ones neither lengthen the pause nor use up the limit."""
    held = state.beads[bead]
    return held.attempt - (held.limit - state.specs[bead].max_attempts)


def _follow_failure(state: SwarmState, bead: str, verdict: AttemptVerdict, after: After, until_us: int) -> list[SwarmEvent]:
    if after is not After.RETRY:
        return [AttemptEnded(bead=bead, verdict=verdict)]
    wait = WaitStarted(bead=bead, effect=state.name_effect(bead, "wait"), until_us=until_us, reason=verdict.reason)
    return [AttemptEnded(bead=bead, verdict=verdict, will_retry=True), wait]


def _follow_closing(bead: str, outcome: CheckEnded) -> list[SwarmEvent]:
    failure = outcome.failure
    if failure is not None and failure.kind is FailureKind.STOPPED:
        return [LaunchInterrupted(bead=bead, due="close", why=failure.message)]
    problem = failure.message if failure is not None else ""
    if not problem and outcome.exit_code != 0:
        problem = f"`bd close` {say_exit(outcome)}"
    return [ClosingFinished(bead=bead, problem=problem, **launch_fields(outcome))]


def saving_ended(outcome: CheckpointEnded) -> list[SwarmEvent]:
    """Note that the uncommitted work is on the branch, or why it is not."""
    bead = unit_of(outcome.effect)
    commit = outcome.branch_commit or outcome.head
    return [SavingFinished(bead=bead, effect=outcome.effect, commit=commit, problem=outcome.unavailable)]


def merge_ended(outcome: MergeEnded) -> list[SwarmEvent]:
    """The merge landed, did not, or is to be tried again."""
    bead = unit_of(outcome.effect)
    if outcome.again:
        return [LaunchInterrupted(bead=bead, due="merge", why=outcome.detail or outcome.verdict.value)]
    verdict, commit = outcome.verdict.value, outcome.commit
    return [MergeFinished(bead=bead, effect=outcome.effect, verdict=verdict, detail=outcome.detail, commit=commit)]
