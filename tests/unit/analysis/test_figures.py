"""Figures, intervals and advice over outcomes, whatever format they came from."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agent_orchestrator.analysis.figures import REASONS_MAX, Figures, recommend, wilson
from agent_orchestrator.analysis.records import Outcome, Record, decode_record, merge_records, read_seconds


def outcomes(done: int, failed: int = 0, **more: Any) -> list[Outcome]:
    good = [Outcome(bead=f"d{number}", status="done", **more) for number in range(done)]
    return [*good, *(Outcome(bead=f"f{number}", status="failed", failure_reason="exit-1", **more) for number in range(failed))]


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (1, 1, 0.2065, 1.0), (810, 1000, 0.7845, 0.8331)],
)
def test_the_wilson_interval_is_the_textbooks(successes: int, total: int, low: float, high: float) -> None:
    found = wilson(successes, total)
    assert found[0] == pytest.approx(low, abs=1e-4)
    assert found[1] == pytest.approx(high, abs=1e-4)


def test_an_interval_of_nothing_is_not_known_and_every_other_contains_its_rate() -> None:
    assert wilson(0, 0) == (None, None)
    for total in range(1, 60):
        for successes in range(total + 1):
            low, high = wilson(successes, total)
            assert low is not None
            assert high is not None
            assert -1e-12 <= low - 1e-12 <= successes / total <= high + 1e-12 <= 1 + 2e-12
            assert not math.isnan(low)


def test_rates_leave_out_what_still_runs() -> None:
    figures = Figures().count([*outcomes(3, 1), Outcome(bead="r", status="running"), Outcome(bead="t", status="timeout")])
    facts = figures.all.facts()
    assert (facts["total"], facts["success"], facts["failed"], facts["timeout"], facts["running"]) == (6, 3, 1, 1, 1)
    assert facts["success_rate"] == 0.6


def test_the_retry_rate_counts_beads_with_more_than_one_attempt() -> None:
    figures = Figures().count([Outcome(bead="a", status="done", attempt=3), Outcome(bead="b", status="done")])
    assert figures.all.retry_rate == 0.5


def test_averages_leave_out_durations_and_costs_that_are_not_known() -> None:
    known = Outcome(bead="a", status="done", duration_s=10.0, cost_usd=0.5)
    facts = Figures().count([known, Outcome(bead="b", status="done")]).all.facts()
    assert (facts["average_duration_seconds"], facts["cost_usd"], facts["cost_known_for"]) == (10.0, 0.5, 1)
    assert Figures().count(outcomes(1)).all.facts()["cost_usd"] is None


def test_beads_are_compared_by_agent_model_and_template() -> None:
    figures = Figures().count([*outcomes(2, agent="claude", model="opus", template="docs"), *outcomes(0, 2, agent="codex")])
    assert {name: tally.success_rate for name, tally in figures.agents.items()} == {"claude": 1.0, "codex": 0.0}
    assert list(figures.models) == ["opus", "unknown"]
    assert list(figures.templates) == ["docs", "custom"]


def test_reasons_are_counted_most_common_first_in_bounded_memory() -> None:
    many = [Outcome(bead=str(number), status="failed", failure_reason=f"reason {number}") for number in range(REASONS_MAX * 2)]
    figures = Figures().count([*outcomes(0, 5), *many])
    assert len(figures.reasons) == REASONS_MAX + 1
    assert figures.common_reasons()[:2] == [("(other)", REASONS_MAX + 1), ("exit-1", 5)]


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (outcomes(2, 1), ["Only 67%"]),
        (outcomes(1, 1), ["Agent unknown succeeds in 50% of 2"]),
        (outcomes(0, 1), []),
        (outcomes(7, 3), []),
        (
            [Outcome(bead=str(n), status="done", attempt=2 if n < 4 else 1) for n in range(10)],
            ["40% of the beads need more than one"],
        ),
        ([Outcome(bead=str(n), status="done", attempt=2 if n < 3 else 1) for n in range(10)], []),
        ([*outcomes(8), *outcomes(1, 1, agent="codex", template="own")], ["Agent codex succeeds in 50% of 2"]),
        ([*outcomes(8), *outcomes(0, 1, agent="codex")], []),
        ([*outcomes(8, agent="a"), *outcomes(1, 2, agent="a", template="docs")], ["Template docs succeeds in 33% of 3"]),
        ([*outcomes(8, agent="a"), *outcomes(1, 1, agent="a", template="docs")], []),
    ],
)
def test_advice_is_given_beyond_the_thresholds_and_not_before(counted: list[Outcome], said: list[str]) -> None:
    given = recommend(Figures().count(counted))
    assert [text for text, start in zip(given, said, strict=True) if not text.startswith(start)] == []


def test_the_newest_attempt_counts_and_a_result_of_another_attempt_says_nothing() -> None:
    run = Record(bead="a", agent="claude", model="opus", attempt=2, status="running", started_at="2026-02-12T17:08:00Z")
    merged = merge_records(run, Record(bead="a", status="failed", attempt=1, finished_at="2026-02-12T17:00:00Z"))
    assert merged is not None
    assert (merged.status, merged.attempt, merged.duration_s) == ("running", 2, None)


def test_minimal_records_give_status_and_duration() -> None:
    run = Record(bead="a", agent="codex", model="x", attempt=1, started_at="2026-02-12T17:08:00Z")
    merged = merge_records(run, Record(bead="a", status="done", attempt=1, finished_at="2026-02-12T17:10:00Z"))
    assert merged is not None
    assert (merged.status, merged.duration_s, merged.template, merged.agent) == ("done", 120.0, "custom", "codex")
    assert merge_records(run, None) is not None
    assert merge_records(None, None) is None


def test_a_placeholder_is_no_time_and_left_out_of_durations() -> None:
    run = Record(bead="a", attempt=1, started_at="'$START'")
    merged = merge_records(run, Record(bead="a", status="done", attempt=1, finished_at="2026-02-12T17:10:00Z"))
    assert merged is not None
    assert merged.duration_s is None
    assert merged.started_s == read_seconds("2026-02-12T17:10:00Z")


def test_fields_of_wrong_types_are_as_good_as_none() -> None:
    odd = decode_record(
        b'{"bead": "a", "agent": 7, "attempt": "two", "duration_seconds": "long", "status": "odd", "started_at": 5}'
    )
    merged = merge_records(odd, None)
    assert merged is not None
    assert (merged.agent, merged.attempt, merged.duration_s, merged.status) == ("unknown", 1, None, "running")
    assert merge_records(decode_record(b'{"bead": null}'), None) is None
