"""The report as a schema that strict APIs accept, and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agent_orchestrator.agents.report import ask_for_report, report_schema, status_words, unfold
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.report import Report, ReportRule, check_report
from agent_orchestrator.systems.workflow.effects import WORDS, Gate
from agent_orchestrator.testing.agents import make_task

RULE = ReportRule(words=WORDS)
ANSWER: dict[str, Any] = {
    "status": "COMPLETED",
    "summary": "done",
    "artifacts": ["a.txt"],
    "metrics": [{"name": "tests", "value": 12}, {"name": "items", "value": ["x", "y"]}],
    "logs": None,
    "files_modified": None,
    "learnings": [{"type": "pitfall", "lesson": "l", "pattern": "p", "context": "c"}],
    "gate_failure": None,
}


def test_each_meaning_is_offered_once() -> None:
    assert status_words(RULE) == ["COMPLETED", "FAILED"]
    assert status_words(ReportRule(words={"DONE": "done", "FAILED": "failed"})) == ["DONE", "FAILED"]


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for one in schema for found in objects(one)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "object" else []
    return here + [found for one in schema.values() for found in objects(one)]


def test_every_object_of_the_schema_is_closed_and_every_field_required() -> None:
    found = objects(report_schema(RULE, Gate))
    assert len(found) == 3
    for one in found:
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])


def test_an_answer_to_the_schema_is_a_report() -> None:
    jsonschema_rs.validator_for(report_schema(RULE, Gate)).validate(ANSWER)
    report = check_report(unfold(ANSWER, Gate), RULE)
    assert isinstance(report, Report)
    assert report.metrics == {"tests": 12, "items": ["x", "y"]}
    assert report.fields == {}
    assert [learning.lesson for learning in report.learnings] == ["l"]


@pytest.mark.parametrize("said", [True, "found P0 issues"])
def test_a_gate_may_say_no(said: object) -> None:
    answer = {**ANSWER, "gate_failure": said}
    jsonschema_rs.validator_for(report_schema(RULE, Gate)).validate(answer)
    report = check_report(unfold(answer, Gate), RULE)
    assert isinstance(report, Report)
    assert report.fields == {"gate_failure": said}


def test_a_role_without_a_gate_is_not_asked_for_one() -> None:
    assert "gate_failure" not in report_schema(RULE, None)["properties"]


def test_a_prompt_asks_for_the_report_by_path_and_words(tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="gemini"))
    asked = ask_for_report(task, tmp_path / "here.json")
    assert str(tmp_path / "here.json") in asked
    assert '"COMPLETED" or "FAILED"' in asked
