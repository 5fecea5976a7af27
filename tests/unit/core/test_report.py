"""A report is read strictly: what cannot be understood is a failure that quotes it, never a guess."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.report import Learning, Report, ReportRule, check_report, read_report

RULE = ReportRule(words={"COMPLETED": "COMPLETED", "DONE": "COMPLETED", "FAILED": "FAILED"}, ids={"run_id": "r", "step_id": "s"})


def test_a_report_is_read_with_what_is_particular_to_its_role() -> None:
    raw = b"""{"schema": "run_report@v0", "run_id": "r", "status": " done ", "summary": "all", "artifacts": ["a"],
              "metrics": {"n": 1}, "logs": null, "gate_failure": true}"""
    report = read_report(raw, RULE)
    assert isinstance(report, Report)
    assert (report.status, report.summary, report.artifacts) == ("COMPLETED", "all", ("a",))
    assert (report.metrics, report.logs) == ({"n": 1}, ())
    assert report.fields == {"run_id": "r", "gate_failure": True}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"all good", "all good"),
        (b"[]", "not a JSON object"),
        (b"{}", "status"),
        (b'{"status": 1}', "status"),
        (b'{"status": "WONDERFUL"}', "WONDERFUL"),
        (b'{"status": "DONE", "run_id": "other"}', "other"),
        (b'{"status": "DONE", "step_id": null}', "step_id"),
        (b'{"status": "DONE", "schema": "run_report@v9"}', "run_report@v9"),
        (b'{"status": "DONE", "artifacts": "a.txt"}', "artifacts"),
        (b'{"status": "DONE", "metrics": []}', "metrics"),
    ],
)
def test_what_is_wrong_with_a_report_is_said_and_quoted(raw: bytes, said: str) -> None:
    failure = read_report(raw, RULE)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.REPORT_INVALID
    assert said in failure.message
    assert len(failure.message) < 500


def test_a_malformed_learning_is_dropped_with_a_warning() -> None:
    document = {"status": "DONE", "learnings": [{"type": "t", "lesson": "l"}, {"type": "t"}, "x"]}
    report = check_report(document, RULE)
    assert isinstance(report, Report)
    assert report.learnings == (Learning(type="t", lesson="l"),)
    assert len(report.warnings) == 2
