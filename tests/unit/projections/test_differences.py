"""The differences of two documents, field by field."""

from __future__ import annotations

from agent_orchestrator.projections.differences import differences


def test_each_field_that_differs_is_named_with_both_values() -> None:
    ours = {"steps": {"a": {"status": "FAILED", "logs": ["one"]}}, "same": [1, {"x": None}], "gone": 1}
    theirs = {"steps": {"a": {"status": "COMPLETED", "logs": ["one", "two"]}}, "same": [1, {"x": None}], "new": True}
    assert differences(ours, theirs) == [
        'steps.a.status: "FAILED" -> "COMPLETED"',
        'steps.a.logs[1]: nothing -> "two"',
        "gone: 1 -> nothing",
        "new: nothing -> true",
    ]


def test_a_number_and_a_truth_are_not_the_same() -> None:
    assert differences({"n": 1}, {"n": True}) == ["n: 1 -> true"]


def test_nothing_that_an_agent_wrote_moves_the_terminal() -> None:
    (line,) = differences({}, {"\x1b[2J": "\u202e" + "x" * 1000})
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 200
