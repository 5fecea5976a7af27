"""Numbers of 400 and of 5,000 digits are refused in one short sentence, wherever a person or a program writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents.refusal import find_wait_s
from agent_orchestrator.agents.script import parse_script
from agent_orchestrator.agents.stream import count_at, money_at
from agent_orchestrator.config.documents import read_file
from agent_orchestrator.core.evidence import count_tests
from agent_orchestrator.core.report import Report, ReportRule, read_report
from agent_orchestrator.core.units import read_count, read_duration_s, read_money
from agent_orchestrator.errors import InvalidSpec, InvalidValue
from agent_orchestrator.surfaces.cli.commands.report import read_since
from agent_orchestrator.systems.phases.bounds import read_money_usd, read_time_s
from agent_orchestrator.systems.workflow.parse import parse

DIGITS = (400, 5_000)
SENTENCE_CHARS = 300
NUMBERS = ("9" * 400, "9" * 5_000, "0x" + "f" * 5_000, "1" + "0" * 400 + ".5", "1.0e+400", "-" + "9" * 400, "1" + ":59" * 300)
VALUES = (10**400, -(10**400), 10**5_000, "9" * 400, "9" * 5_000, 1e300, f"{'9' * 400}h")
"""Numbered in the names of tests: nobody can print the third."""
READERS: list[Callable[[object, str], object]] = [read_duration_s, read_count, read_money]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_no_duration_count_or_amount_is_that_large(read: Callable[[object, str], object], value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(value, "the limit")
    assert len(str(refused.value)) < SENTENCE_CHARS


@pytest.mark.parametrize("read", [read_money_usd, read_time_s])
@pytest.mark.parametrize("text", ["9" * 400, "9" * 5_000, f"{'9' * 400}h"], ids=len)
def test_nor_one_of_a_task_document(read: Callable[[object, str], object], text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(text, "maximum")
    assert len(str(refused.value)) < SENTENCE_CHARS


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: f"{text[:5]}-{len(text)}")
@pytest.mark.parametrize("key", ["timeout", "max_attempts", "budget_usd", "budget_tokens", "budget_time", "check", "needs", "id"])
def test_a_workflow_with_such_a_number_is_refused_with_its_line(key: str, number: str) -> None:
    lines = {"id": "a", "agent": "coder", "prompt": "p.md"} | {key: number}
    text = "steps:\n  - " + "\n    ".join(f"{name}: {value}" for name, value in lines.items()) + "\n"
    with pytest.raises(InvalidSpec) as refused:
        parse(text, "w.yaml")
    (problem,) = [one for one in refused.value.problems if "missing" not in one.message]
    assert problem.line == list(lines).index(key) + 2
    assert len(str(refused.value)) < SENTENCE_CHARS


@pytest.mark.parametrize("number", [*NUMBERS, "!!bool maybe", "!!int x", '!!int ""'], ids=lambda text: f"{text[:5]}-{len(text)}")
def test_no_metadata_or_item_of_a_workflow_is_such_a_number(number: str) -> None:
    steps = (
        f"steps:\n  - id: a\n    agent: coder\n    prompt: p.md\n    metadata: {{a: {number}}}\n    loop: {{items: [{number}]}}\n"
    )
    with pytest.raises(InvalidSpec) as refused:
        parse(steps, "w.yaml")
    assert [problem.line for problem in refused.value.problems] == [5, 6]
    assert len(str(refused.value)) < 2 * SENTENCE_CHARS


@pytest.mark.parametrize(
    "number", ["9" * 400, "9" * 5_000, "0x" + "f" * 5_000, "1e400"], ids=lambda text: f"{text[:5]}-{len(text)}"
)
@pytest.mark.parametrize(
    "line",
    [
        "[run]\nbudget = ",
        "[budget]\nrun_tokens = ",
        "[budget]\nrun_time = ",
        "[agents.claude]\nmax_turns = ",
    ],
)
def test_a_configuration_with_such_a_number_is_refused_with_its_line(tmp_path: Path, line: str, number: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"{line}{number}\n")
    found = read_file(file)
    assert found is not None
    (fault,) = found.faults
    assert fault.line == 2
    assert len(fault.sentence) < SENTENCE_CHARS


@pytest.mark.parametrize("number", [*NUMBERS, "!!int x"], ids=lambda text: f"{text[:5]}-{len(text)}")
@pytest.mark.parametrize("key", ["takes", "exit", "cost_usd", "tokens", "say", *("9" * 5_000,)], ids=lambda key: key[:9])
def test_a_script_with_such_a_number_is_refused_with_its_line(key: str, number: str) -> None:
    said = f"{{input: {number}}}" if key == "tokens" else number
    with pytest.raises(InvalidSpec) as refused:
        parse_script(f"- step: a\n  {key}: {said}\n", "script.yaml")
    assert [problem.line for problem in refused.value.problems] == [2]
    assert len(str(refused.value)) < 2 * SENTENCE_CHARS


@pytest.mark.parametrize("digits", DIGITS)
def test_what_agents_and_checks_say_in_such_numbers_does_no_harm(digits: int) -> None:
    number = "9" * digits
    rule = ReportRule(words={"COMPLETED": "COMPLETED"})
    report = read_report(f'{{"status": "COMPLETED", "metrics": {{"a": {number}}}, "left": {number}}}'.encode(), rule)
    assert not isinstance(report, Report) or msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
    read_report(f'{{"status": {number}}}'.encode(), rule)
    assert count_at({"a": 10**digits}, "a") is None
    assert money_at({"a": 10**digits}, "a") is None
    assert find_wait_s(f"retry in {number}s") is None
    for said in (
        f"{number} passed in 1s",
        f"Ran {number} tests in 1s",
        f"Tests: {number} total",
        "test result: ok. {number} passed; 1 failed",
    ):
        count_tests(said)


@pytest.mark.parametrize(
    "text", ["9" * 400, f"{'9' * 400}d", f"{'9' * 5_000}d", f"{'9' * 400}h"], ids=lambda text: f"{text[:5]}-{len(text)}"
)
def test_a_time_so_long_ago_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_since(text, 1_700_000_000_000_000)
    assert len(str(refused.value)) < SENTENCE_CHARS
