"""The record of a unit's launches, the same in every system."""

from __future__ import annotations

from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.launch_events import AgentLaunchFinished, CheckLaunchFinished
from agent_orchestrator.core.limits import FEEDBACK_ENTRIES_MAX, LAUNCHES_KEPT, TIMEOUT_LEFT_MIN_S
from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.core.units import US


def ended(kind: FailureKind | None = None, *, took_s: int = 10, session: str | None = "s1") -> AgentLaunchFinished:
    failure = Failure(kind=kind, message="no") if kind is not None else None
    goes_on = failure.goes_on if failure is not None else None
    return AgentLaunchFinished(
        effect=EffectId("r/u/1"),
        started_us=0,
        ended_us=took_s * US,
        failure=failure,
        session=session,
        warnings=("odd",),
        goes_on=goes_on,
    )


def launched() -> UnitRecord:
    record = UnitRecord()
    record.open_launch(EffectId("r/u/1"), 0)
    return record


def test_an_attempt_that_goes_on_keeps_its_session_and_has_less_time() -> None:
    record = launched()
    record.end_agent(ended(FailureKind.RATE_LIMITED))
    assert (record.session, record.time_left_s(60.0), record.time_left_s(None)) == ("s1", 50.0, None)
    record.open_launch(EffectId("r/u/2"), 0)
    record.end_agent(ended(FailureKind.RATE_LIMITED, took_s=55))
    assert record.time_left_s(60.0) == TIMEOUT_LEFT_MIN_S


def test_a_lost_session_and_one_of_an_attempt_that_is_over_are_not_gone_on_with() -> None:
    for kind in (FailureKind.SESSION_LOST, FailureKind.EXIT, None):
        record = launched()
        record.end_agent(ended(kind))
        assert record.session is None
        assert record.history[-1].session == "s1"


def test_a_launch_without_an_outcome_is_closed_once() -> None:
    record = launched()
    record.abandon_launch(7, "stopped")
    record.abandon_launch(9, "aborted")
    assert (record.history[-1].ended_us, record.history[-1].failure) == (7, "stopped")


def test_what_is_kept_is_bounded_and_warnings_are_kept_once() -> None:
    record = UnitRecord()
    for number in range(LAUNCHES_KEPT + 5):
        record.open_launch(EffectId(f"r/u/{number}"), number)
        record.tell({"attempt": number})
        record.warn("odd")
    assert record.launches == LAUNCHES_KEPT + 5
    assert (len(record.history), len(record.feedback), record.warnings) == (LAUNCHES_KEPT, FEEDBACK_ENTRIES_MAX, ("odd",))


def test_a_check_leaves_its_evidence_and_reruns_are_counted_in_a_row() -> None:
    record = launched()
    record.end_check(
        CheckLaunchFinished(effect=EffectId("r/u/1"), started_us=0, ended_us=US, exit_code=1, moved=True), "make test"
    )
    assert [(one.command, one.exit_code, one.duration_s, one.void) for one in record.evidence] == [("make test", 1, 1.0, True)]
    record.count_rerun(again=True)
    assert record.reruns == 1
    record.count_rerun(again=False)
    assert record.reruns == 0


def test_to_keep_one_more_launch_copies_none_of_those_before() -> None:
    record = launched()
    record.open_launch(EffectId("r/u/2"), 2)
    kept = record.history
    for number in range(3, 3 * LAUNCHES_KEPT):
        record.open_launch(EffectId(f"r/u/{number}"), number)
        assert record.history is kept, "a new list each time would be a copy of all, item after item"
    assert [launch.started_us for launch in kept] == list(range(2 * LAUNCHES_KEPT, 3 * LAUNCHES_KEPT))
