"""The `when` language: comparisons over what is known, and no other code."""

from __future__ import annotations

import pytest

from agent_orchestrator.systems.workflow.when import Operand, WhenError, holds, operands, parse_when

VALUES = {
    ("status", "scan", ""): "COMPLETED",
    ("metric", "scan", "issues"): "12",
    ("metric", "scan", "ratio"): "0.50",
    ("metric", "scan", "passed"): "true",
    ("metric", "scan", "level"): "high",
    ("metric", "code-review.v2", "a.b"): "1",
    ("vars", "env", ""): "prod",
    ("env", "CI", ""): "1",
}


def look_up(operand: Operand) -> str | None:
    return VALUES.get((operand.kind, operand.name or "", operand.metric))


@pytest.mark.parametrize(
    "text",
    [
        "scan.status == 'COMPLETED'",
        'scan.status != "FAILED"',
        "scan.metrics.issues > 9",
        "scan.metrics.issues >= 12 and scan.metrics.issues <= 12",
        "scan.metrics.issues == 12.0",
        "scan.metrics.ratio == 0.5",
        "scan.metrics.ratio < 5e-1 or scan.metrics.ratio == 5e-1",
        "-1 < 0",
        "scan.metrics.passed == true",
        "scan.metrics.passed != false",
        "scan.metrics.level == 'high'",
        "'abc' < 'abd'",
        "vars.env == 'prod' and not env.CI == '0'",
        "vars.nothing == null",
        "scan.metrics.issues != null",
        "not vars.nothing > 1",
        "code-review.v2.metrics.a.b == 1",
        "not (scan.metrics.issues < 1 or vars.env == 'dev')",
        "1 == 2 or 1 == 1 and 2 == 2",
        "not 1 == 2 and 1 == 1",
        "'and' == 'and'",
    ],
)
def test_it_is_true(text: str) -> None:
    assert holds(parse_when(text), look_up)


@pytest.mark.parametrize(
    "text",
    [
        "scan.metrics.issues < 9",
        "vars.nothing < 1",
        "vars.nothing >= 1",
        "vars.nothing != null",
        "null < null",
        "scan.status == 'completed'",
        "(1 == 2 or 1 == 1) and 2 == 3",
        "scan.metrics.level == high.status",
    ],
)
def test_it_is_false(text: str) -> None:
    assert not holds(parse_when(text), look_up)


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "a value is expected at the end"),
        ("vars.x", 7, "a comparison"),
        ("vars.x == ", 10, "a value is expected at the end"),
        ("vars.x = 1", 8, "unexpected '='"),
        ("vars.x == 1 2", 13, "unexpected '2'"),
        ("1 < 2 < 3", 7, "unexpected '<'"),
        ("(vars.x == 1", 13, "a ')' is missing"),
        ("plain == 1", 1, "'plain' is neither"),
        ("vars. == 1", 1, "'vars.' is neither"),
        ("== 1", 1, "instead of '=='"),
        ("vars.x == 'open", 11, 'unexpected "\'"'),
        ("__import__('os') == 1", 1, "'__import__' is neither"),
        ("vars.x == 1; 2", 12, "unexpected ';'"),
        ("(" * 100 + "1 == 1" + ")" * 100, 51, "nested too deeply"),
    ],
)
def test_what_cannot_be_understood_is_refused_at_its_place(text: str, column: int, said: str) -> None:
    with pytest.raises(WhenError) as caught:
        parse_when(text)
    assert said in str(caught.value)
    assert caught.value.column == column


def test_operands_come_in_the_order_of_the_text() -> None:
    names = [operand.name for operand in operands(parse_when("a.status == 'x' and not (vars.b > env.C)"))]
    assert names == ["a", "x", "b", "C"]
