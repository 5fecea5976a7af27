"""A session of opencode that grew too long is summed up and goes on: neither its error nor its summary is the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents.opencode import AGENT
from agent_orchestrator.agents.stream import ResultWatch
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.testing.agents import make_ending, make_task


def line(kind: str, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1794803111026, "sessionID": "ses_1", "part": part}


OVERFLOW = {"type": "error", "sessionID": "ses_1", "error": {"name": "ContextOverflowError", "data": {"message": "too big"}}}
BEGAN, STOP = line("step_start"), line("step_finish", reason="stop", tokens={"input": 5, "output": 2}, cost=0.01)
SUMMARY = [BEGAN, line("text", text="What was done so far."), STOP]
CONTINUE = line("text", synthetic=True, metadata={"compaction_continue": True}, text="Continue if you have next steps.")
LAST = [BEGAN, line("text", text="It is done."), STOP]


@pytest.mark.parametrize(
    ("lines", "exit_code", "kind"),
    [
        ([OVERFLOW, *SUMMARY, CONTINUE, *LAST], 0, None),
        ([*LAST, *SUMMARY, CONTINUE, *LAST], 0, None),
        ([*LAST, *SUMMARY, CONTINUE], 0, "exit"),
        ([BEGAN, OVERFLOW], 1, "prompt_too_long"),
    ],
)
def test_it_is_judged_by_its_last_word(lines: list[dict[str, Any]], exit_code: int, kind: str | None, tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name="opencode"))
    ending = make_ending(task, exit_code)
    ending.out.write_text("".join(json.dumps(one) + "\n" for one in lines))
    task.report.write_text('{"status": "COMPLETED"}')
    failure = AGENT.judge(task, ending).failure
    assert (failure.kind.value if failure is not None else None) == kind


def test_it_is_not_taken_for_done_while_it_works_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    watch = ResultWatch(out, AGENT.read)
    said = []
    with out.open("a") as file:
        for one in (BEGAN, OVERFLOW, *SUMMARY, CONTINUE, *LAST):
            file.write(json.dumps(one) + "\n")
            file.flush()
            said.append(watch())
    assert said == [False, False, False, False, True, False, False, False, True]
