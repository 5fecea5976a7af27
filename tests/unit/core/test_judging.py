"""The judgement of an ended agent: one rule for every system."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.failure import DETERMINISTIC, GOES_ON, Failure, FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.core.judging import After, judge_agent, judge_attempt, judge_session, retry_us, session_after
from agent_orchestrator.core.limits import RETRY_BASE_S, RETRY_CAP_S
from agent_orchestrator.core.units import US

EFFECT = EffectId("r/a/i1.a1.l1.agent")


def _failed(kind: FailureKind, retry_at_us: int | None = None) -> Failure:
    return Failure(kind=kind, message="no", retry_at_us=retry_at_us)


def test_an_agent_that_did_not_fail_succeeded() -> None:
    assert judge_agent(None, 1, 1) is After.SUCCESS


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_goes_on_is_retried_or_is_final(kind: FailureKind) -> None:
    early, last = judge_agent(_failed(kind), 1, 3), judge_agent(_failed(kind), 3, 3)
    if kind in GOES_ON:
        assert (early, last) == (After.GOES_ON, After.GOES_ON), "an interruption uses up no attempt"
    elif kind in DETERMINISTIC:
        assert (early, last) == (After.FAILURE, After.FAILURE)
    else:
        assert (early, last) == (After.RETRY, After.FAILURE)


def test_without_a_limit_a_failed_attempt_is_always_followed_by_another() -> None:
    assert judge_attempt(1_000, None) is After.RETRY
    assert judge_agent(_failed(FailureKind.AUTH), 1, None) is After.FAILURE


def test_the_pause_before_the_next_attempt_doubles_up_to_its_cap() -> None:
    pauses = [retry_us(attempt, EFFECT, 5 * US) - 5 * US for attempt in (1, 2, 3, 100)]
    assert pauses[1] == pytest.approx(2 * pauses[0], abs=2)
    assert pauses[2] == pytest.approx(4 * pauses[0], abs=4)
    assert RETRY_BASE_S * US <= pauses[0] <= 1.25 * RETRY_BASE_S * US
    assert pauses[3] <= 1.25 * RETRY_CAP_S * US


def test_no_attempt_starts_before_the_failure_says_that_it_is_of_use() -> None:
    assert retry_us(1, EFFECT, 0, _failed(FailureKind.OVERLOADED, retry_at_us=500 * US)) == 500 * US
    past = _failed(FailureKind.OVERLOADED, retry_at_us=1)
    assert retry_us(1, EFFECT, 10 * US, past) == retry_us(1, EFFECT, 10 * US), "a time that is over shortens no pause"


def test_a_lost_session_is_not_gone_on_with() -> None:
    outcome = AgentEnded(effect=EFFECT, started_us=0, ended_us=1, session="s1")
    assert session_after(outcome, None) == "s1"
    assert session_after(outcome, _failed(FailureKind.STOPPED)) == "s1"
    assert session_after(outcome, _failed(FailureKind.SESSION_LOST)) is None


def test_where_there_was_no_session_none_can_be_lost() -> None:
    judged = judge_session(_failed(FailureKind.SESSION_LOST), None)
    assert judged is not None
    assert judged.kind is FailureKind.EXIT
