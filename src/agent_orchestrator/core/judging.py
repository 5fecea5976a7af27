"""Says what the end of a program means, the same in every system: of a check what it is worth, of an agent what follows.

A system's `decide` asks here and adds only what follows in its own way of working.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent_orchestrator.core.effects import Effect, RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded
from agent_orchestrator.core.limits import CHECK_RERUNS_MAX
from agent_orchestrator.core.retry import backoff_us
from agent_orchestrator.core.text import last_line

_WENT_ON_IN_0_1_0 = frozenset({FailureKind.STOPPED, FailureKind.SESSION_LOST, FailureKind.RATE_LIMITED, FailureKind.BUDGET})
"""For old journals only: never changed, whatever goes on today."""


class Worth(StrEnum):
    """The worth of a check as evidence."""

    PASSED = "passed"
    FAILED = "failed"
    AGAIN = "again"
    """Of nothing: it was lost, or the tree moved while it ran. It is run once more."""
    STOPPED = "stopped"
    """Of nothing: the engine was asked to stop it. It is run again when the run goes on."""


def tree_moved(outcome: CheckEnded) -> bool:
    """Tell whether the working tree changed while the check ran: what it showed is about neither of the two trees."""
    before, after = outcome.tree_before, outcome.tree_after
    return before is not None and after is not None and before != after


def judge_check(outcome: CheckEnded, reruns: int, *, shared: bool = False) -> Worth:
    """Judge a check that was run again `reruns` times already; in a `shared` tree others may change files meanwhile."""
    failure = outcome.failure
    if failure is not None and failure.kind is FailureKind.STOPPED:
        return Worth.STOPPED
    moved = tree_moved(outcome) and not shared
    lost = failure is not None and failure.kind is FailureKind.LOST
    if (moved or lost) and reruns < CHECK_RERUNS_MAX:
        return Worth.AGAIN
    passed = failure is None and outcome.exit_code == 0 and not moved
    return Worth.PASSED if passed else Worth.FAILED


def say_check_failure(outcome: CheckEnded, *, moved: bool) -> str:
    """Say why a check did not pass, to follow its name in a sentence."""
    if moved:
        return "changed the working tree while it ran"
    if outcome.failure is not None:
        return f"could not be run to its end: {outcome.failure.message}"
    return say_exit(outcome)


def say_exit(outcome: CheckEnded) -> str:
    """Say the exit code of a command and the last line of its output."""
    last = last_line(outcome.tail)
    return f"exited with code {outcome.exit_code}" + (f": {last}" if last else "")


def known_worth(said: Worth | None, failure: Failure | None, exit_code: int | None, *, moved: bool, again: bool) -> Worth:
    """Give the worth that a journal says a check has; journals of 0.1.0 do not say it, and this is what it was then."""
    if said is not None:
        return said
    if failure is not None and failure.kind is FailureKind.STOPPED:
        return Worth.STOPPED
    if again:
        return Worth.AGAIN
    return Worth.PASSED if failure is None and exit_code == 0 and not moved else Worth.FAILED


def judge_session(failure: Failure | None, effect: Effect | None) -> Failure | None:
    """Let a lost session go on in a fresh one only where there was one to lose: else its launches would never end."""
    if failure is None or failure.kind is not FailureKind.SESSION_LOST:
        return failure
    if isinstance(effect, RunAgent) and effect.session is not None:
        return failure
    return msgspec.structs.replace(failure, kind=FailureKind.EXIT)


class After(StrEnum):
    """The step that follows the end of an agent."""

    SUCCESS = "success"
    GOES_ON = "goes_on"
    """It was interrupted: the same attempt goes on with a new launch, as soon as it may."""
    RETRY = "retry"
    """It failed, and another attempt may end differently."""
    FAILURE = "failure"
    """It failed for good: it would only fail again, or it was tried as often as is allowed."""


def judge_agent(failure: Failure | None, attempt: int, attempts_max: int | None) -> After:
    """Say what follows attempt number `attempt`; without `attempts_max` only what would fail again is not retried."""
    if failure is None:
        return After.SUCCESS
    if failure.goes_on:
        return After.GOES_ON
    return judge_attempt(attempt, attempts_max) if failure.retryable else After.FAILURE


def has_gone_on(said: bool | None, failure: Failure | None) -> bool:
    """Tell whether an attempt went on, as the journal says; journals of 0.1.0 do not say it, and this was the rule then."""
    if said is not None:
        return said
    return failure is not None and failure.kind in _WENT_ON_IN_0_1_0


def judge_attempt(attempt: int, attempts_max: int | None) -> After:
    """Say whether another attempt follows one that failed."""
    return After.RETRY if attempts_max is None or attempt < attempts_max else After.FAILURE


def retry_us(attempt: int, effect: EffectId, now_us: int, failure: Failure | None = None) -> int:
    """Say when the next attempt may start: after the pause, and not before the failure says that it is of use."""
    not_before_us = failure.retry_at_us if failure is not None else None
    return max(now_us + backoff_us(attempt, effect), not_before_us or 0)


def session_after(outcome: AgentEnded, failure: Failure | None) -> str | None:
    """Give the session that the next launch may go on with: a lost one is gone."""
    lost = failure is not None and failure.kind is FailureKind.SESSION_LOST
    return None if lost else outcome.session
