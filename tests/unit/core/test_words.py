"""Ids, units, failures and retries: strict readers, and one spelling for what we write."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agent_orchestrator.core.failure import DETERMINISTIC, Failure, FailureKind
from agent_orchestrator.core.ids import EffectId, RunId, UnitId, checked_id, effect_id, split_effect_id
from agent_orchestrator.core.limits import RETRY_BASE_S, RETRY_CAP_S, SHORTAGE_BASE_S, SHORTAGE_CAP_S
from agent_orchestrator.core.retry import backoff_us, shortage_pause_s
from agent_orchestrator.core.units import US, from_iso, iso, read_count, read_duration_s, say_count, say_duration, was_or_were
from agent_orchestrator.errors import InvalidId, InvalidValue


@pytest.mark.parametrize("value", ["a", "A-b_c.9", "0", "x" * 100])
def test_an_id_of_letters_digits_and_three_signs_is_taken_as_it_is(value: str) -> None:
    assert checked_id(value, "The run id") == value


@pytest.mark.parametrize(
    "value", ["", ".", "..", "-a", "_a", "a/b", "../a", "a b", "a\n", "a\0", "ä", "x" * 101, None, 7, b"a", "a~1"]
)
def test_any_other_id_is_refused_before_it_becomes_a_path(value: Any) -> None:
    with pytest.raises(InvalidId, match="The run id"):
        checked_id(value, "The run id")


def test_an_effect_id_names_run_unit_iteration_attempt_and_launch() -> None:
    effect = effect_id(RunId("f8c1"), UnitId("code"), 2, 3, 4, "agent")
    assert effect == "f8c1/code/i2.a3.l4.agent"
    assert split_effect_id(effect) == ("f8c1", "code", "i2.a3.l4.agent")


@pytest.mark.parametrize(
    ("at_us", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_736_951_400_123_456, "2025-01-15T14:30:00.123456Z"),
        (1_736_951_400_000_001, "2025-01-15T14:30:00.000001Z"),
    ],
)
def test_times_are_written_with_six_decimals_and_read_back_exactly(at_us: int, text: str) -> None:
    assert iso(at_us) == text
    assert from_iso(text) == at_us


def test_times_of_other_zones_and_without_one_are_understood() -> None:
    assert from_iso("2025-01-15T16:30:00+02:00") == from_iso("2025-01-15T14:30:00Z") == from_iso("2025-01-15T14:30:00")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90), (1.5, 1.5), ("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), (" 1h 2m 3s ", 3723)],
)
def test_durations_are_read(given: object, seconds: float) -> None:
    assert read_duration_s(given, "timeout") == seconds


@pytest.mark.parametrize("given", [0, -1, math.nan, math.inf, True, None, "", "  ", "abc", "nan", "-5", "5x", "1m1h", [], "0s"])
def test_a_duration_that_is_none_is_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        read_duration_s(given, "timeout")


@pytest.mark.parametrize(("given", "number"), [(1, 1), ("4", 4), (" 7 ", 7), ("+2", 2)])
def test_counts_are_read(given: object, number: int) -> None:
    assert read_count(given, "--max-attempts") == number


@pytest.mark.parametrize("given", [0, -1, 1.0, 1.5, True, None, "", "0", "-1", "1.5", "nan", "abc", "9" * 30, []])
def test_a_count_that_is_none_is_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidValue, match="--max-attempts"):
        read_count(given, "--max-attempts")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8s"), (42, "42s"), (187, "3m 07s"), (7500, "2h 05m"), (59.6, "1m 00s"), (3599.7, "1h 00m")]
)
def test_durations_are_said_for_people(seconds: float, text: str) -> None:
    assert say_duration(seconds) == text


def test_exactly_what_would_happen_again_is_not_retried() -> None:
    kinds = {kind for kind in FailureKind if not Failure(kind=kind, message="x").retryable}
    assert kinds == set(DETERMINISTIC)
    assert kinds >= {FailureKind.LAUNCH, FailureKind.SPEC, FailureKind.AUTH, FailureKind.PROMPT_TOO_LONG}
    mended = {FailureKind.EXIT, FailureKind.REPORTED, FailureKind.REPORT_MISSING, FailureKind.REPORT_INVALID}
    mended |= {FailureKind.OVERLOADED, FailureKind.TIMEOUT, FailureKind.IDLE, FailureKind.OUTPUT_LIMIT, FailureKind.LOST}
    mended |= {FailureKind.DENIED, FailureKind.UNWRITTEN}
    assert not kinds & mended


def test_backoff_doubles_up_to_a_cap_and_is_the_same_every_time() -> None:
    pauses = [backoff_us(attempt, EffectId("run/a/i0.a1.l1.agent")) for attempt in range(1, 40)]
    assert pauses == [backoff_us(attempt, EffectId("run/a/i0.a1.l1.agent")) for attempt in range(1, 40)]
    assert pauses == sorted(pauses)
    assert RETRY_BASE_S * US <= pauses[0] <= 1.25 * RETRY_BASE_S * US
    assert RETRY_CAP_S * US <= pauses[-1] <= 1.25 * RETRY_CAP_S * US
    assert abs(pauses[2] - 4 * pauses[0]) <= 4


def test_a_shortage_that_lasts_for_weeks_is_waited_out() -> None:
    pauses = [shortage_pause_s(tries) for tries in (0, 1, 2, 100, 100_000)]
    assert pauses == [SHORTAGE_BASE_S, 2 * SHORTAGE_BASE_S, 4 * SHORTAGE_BASE_S, SHORTAGE_CAP_S, SHORTAGE_CAP_S]


def test_steps_that_failed_together_do_not_start_again_together() -> None:
    pauses = {backoff_us(1, EffectId(f"run/s{number}/i0.a1.l1.agent")) for number in range(50)}
    assert len(pauses) > 40


def test_a_bad_value_is_told_what_it_must_be() -> None:
    with pytest.raises(InvalidValue, match="--max-iterations is '0': it must be a whole number, at least 1"):
        read_count("0", "--max-iterations")


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "file", "0 files were"), (1, "file", "1 file was"), (2, "file", "2 files were"), (2, "launch", "2 launches were")],
)
def test_a_count_agrees_with_its_noun_and_its_verb(number: int, noun: str, text: str) -> None:
    assert f"{say_count(number, noun)} {was_or_were(number)}" == text
