"""The last words of a CLI: people and later attempts are shown them, never its stream of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import Verdict
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.output import read_tails
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.testing.agents import make_ending, make_task
from tests.unit.agents.test_writing import REPORT, STREAMS

KILLED = Failure(kind=FailureKind.TIMEOUT, message="Timed out")


def judged(folder: Path, name: str, lines: list[dict[str, Any]], cause: Failure | None = None) -> tuple[Verdict, str]:
    """The verdict, and the tail that is kept."""
    task = make_task(folder, AgentChoice(name=name))
    ending = make_ending(task, 0 if cause is None else 143, cause)
    ending.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ending.err.write_text("")
    task.report.write_text(json.dumps(REPORT))
    agent = find_agent(name)
    assert isinstance(agent, CliAgent)
    verdict = agent.judge(task, ending)
    return verdict, read_tails(ending, verdict.said, agent.chatter)


@pytest.mark.parametrize("name", STREAMS)
def test_one_that_only_reports_has_its_summary_for_last_words(name: str, tmp_path: Path) -> None:
    verdict, tail = judged(tmp_path, name, STREAMS[name](("write", True)))
    assert verdict.failure is None
    assert (verdict.said, tail) == (REPORT["summary"], REPORT["summary"])


@pytest.mark.parametrize("name", STREAMS)
def test_the_stream_of_one_that_was_stopped_before_it_said_anything_is_not_quoted(name: str, tmp_path: Path) -> None:
    verdict, tail = judged(tmp_path, name, STREAMS[name](("write", True))[:3], KILLED)
    assert verdict.failure == KILLED
    assert tail == ""


def test_words_beside_the_report_come_first(tmp_path: Path) -> None:
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "All of it is there now."}]}}
    *lines, end = STREAMS["claude"](("write", True))
    assert judged(tmp_path, "claude", [*lines, said, end])[1] == "All of it is there now."
