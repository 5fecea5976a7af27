"""Says what the end of a program is worth, the same in every system: passed, failed, once more, or stopped.

A system's `decide` asks here and adds only what follows in its own way of working.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent_orchestrator.core.effects import Effect, RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import CheckEnded
from agent_orchestrator.core.limits import CHECK_RERUNS_MAX


class Worth(StrEnum):
    """What a check is evidence of."""

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


def judge_session(failure: Failure | None, effect: Effect | None) -> Failure | None:
    """Let a lost session go on in a fresh one only where there was one to lose: else its launches would never end."""
    if failure is None or failure.kind is not FailureKind.SESSION_LOST:
        return failure
    if isinstance(effect, RunAgent) and effect.session is not None:
        return failure
    return msgspec.structs.replace(failure, kind=FailureKind.EXIT)
