"""The report of a CLI: its place, and that the launch keeps it in its own, whatever lies there."""

from __future__ import annotations

import json
from pathlib import Path

from agent_orchestrator.agents.claude import AGENT as CLAUDE
from agent_orchestrator.agents.gemini import AGENT as GEMINI
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.testing.agents import make_ending, make_task

DONE = '{"type":"result","status":"success","stats":{}}\n'
STRUCTURED = '{"type":"result","subtype":"success","is_error":false,"structured_output":{"status":"COMPLETED","logs":null}}\n'


def test_a_file_beside_the_artifacts_is_read_and_kept(tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="gemini"), required=True)
    ending = make_ending(task)
    ending.out.write_text(DONE)
    GEMINI.report_file(task).write_text('{"status": "COMPLETED", "summary": "by file"}')
    verdict = GEMINI.judge(task, ending)
    assert verdict.report is not None
    assert json.loads(task.report.read_text())["summary"] == "by file"


def test_a_file_at_the_contracts_own_place_counts_too(tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="gemini"), required=True)
    ending = make_ending(task)
    ending.out.write_text(DONE)
    task.report.write_text('{"status": "COMPLETED"}')
    assert GEMINI.judge(task, ending).failure is None


def test_without_any_the_place_that_was_asked_for_is_named(tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="gemini"), required=True)
    ending = make_ending(task)
    ending.out.write_text(DONE)
    failure = GEMINI.judge(task, ending).failure
    assert failure is not None
    assert failure.kind is FailureKind.REPORT_MISSING
    assert str(GEMINI.report_file(task)) in failure.message


def test_a_link_in_the_reports_place_is_not_followed(tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="claude"))
    ending = make_ending(task)
    ending.out.write_text(STRUCTURED)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    task.report.symlink_to(victim)
    assert CLAUDE.judge(task, ending).failure is None
    assert victim.read_text() == "mine"
    assert json.loads(task.report.read_text()) == {"run_id": "run1", "step_id": "build", "status": "COMPLETED"}
