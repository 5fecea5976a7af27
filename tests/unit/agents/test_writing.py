"""An agent whose every change of a file failed is not believed, by what its stream says of each tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.testing.agents import make_ending, make_task

REPORT = {"status": "COMPLETED", "summary": "done"}


def claude(*tools: tuple[str, bool]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "session_id": "s"}]
    for number, (tool, ok) in enumerate(tools):
        name = {"write": "Edit", "run": "Bash", "read": "Read"}[tool]
        lines.append({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": f"t{number}", "name": name}]}})
        ended = {"type": "tool_result", "tool_use_id": f"t{number}", **({} if ok else {"is_error": True})}
        lines.append({"type": "user", "message": {"content": [ended]}})
    return [*lines, {"type": "result", "subtype": "success", "is_error": False, "structured_output": REPORT}]


def codex(*tools: tuple[str, bool]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [{"type": "thread.started", "thread_id": "s"}]
    for number, (tool, ok) in enumerate(tools):
        kind = {"write": "file_change", "run": "command_execution", "read": "web_search"}[tool]
        status = "completed" if ok else "failed"
        lines.append({"type": "item.completed", "item": {"id": f"item_{number}", "type": kind, "status": status}})
    said = {"id": "last", "type": "agent_message", "text": json.dumps(REPORT)}
    return [*lines, {"type": "item.completed", "item": said}, {"type": "turn.completed", "usage": {}}]


def gemini(*tools: tuple[str, bool]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [{"type": "init", "session_id": "s"}]
    for number, (tool, ok) in enumerate(tools):
        name = {"write": "replace", "run": "run_shell_command", "read": "read_file"}[tool]
        lines.append({"type": "tool_use", "tool_name": name, "tool_id": f"{name}__{number}"})
        error = {} if ok else {"error": {"type": "edit_no_occurrence_found", "message": "0 occurrences"}}
        lines.append({"type": "tool_result", "tool_id": f"{name}__{number}", "status": "success" if ok else "error", **error})
    return [*lines, {"type": "result", "status": "success", "stats": {}}]


def opencode(*tools: tuple[str, bool]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for number, (tool, ok) in enumerate(tools):
        name = {"write": "edit", "run": "bash", "read": "read"}[tool]
        state: dict[str, Any] = {"status": "completed", "metadata": {"exit": 0 if ok else 1}}
        if tool != "run" and not ok:
            state = {"status": "error", "error": "oldString not found"}
        lines.append({"type": "tool_use", "sessionID": "s", "part": {"tool": name, "callID": f"c{number}", "state": state}})
    return [*lines, {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop", "tokens": {}}}]


STREAMS = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}


def judge(folder: Path, name: str, lines: list[dict[str, Any]]) -> tuple[FailureKind | None, str]:
    task = make_task(folder, AgentChoice(name=name))
    ending = make_ending(task)
    ending.out.write_text("\n".join(map(json.dumps, lines)))
    ending.err.write_text("")
    task.report.write_text(json.dumps(REPORT))
    agent = find_agent(name)
    assert isinstance(agent, CliAgent)
    failure = agent.judge(task, ending).failure
    return (failure.kind, failure.message) if failure is not None else (None, "")


@pytest.mark.parametrize("name", STREAMS)
def test_one_whose_every_write_failed_is_not_believed(name: str, tmp_path: Path) -> None:
    lines = STREAMS[name](("write", False), ("run", False), ("read", True), ("write", False))
    kind, message = judge(tmp_path, name, lines)
    assert kind is FailureKind.UNWRITTEN
    assert "every change of a file that it tried failed (2 changes)" in message
    assert ("`orc doctor` tries its sandbox" in message) == (name == "codex")


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    "tools",
    [
        [("write", False), ("write", True)],
        [("write", False), ("run", True)],
        [("run", False)],
        [("run", False), ("run", False)],
        [("read", False)],
        [],
    ],
)
def test_one_that_got_something_done_or_only_looked_is_believed(name: str, tools: list[tuple[str, bool]], tmp_path: Path) -> None:
    assert judge(tmp_path, name, STREAMS[name](*tools)) == (None, "")


def test_a_write_that_was_refused_is_a_refusal(tmp_path: Path) -> None:
    lines = claude(("write", False))
    lines[-1]["permission_denials"] = [{"tool_name": "Edit", "tool_use_id": "t0", "tool_input": {"file_path": "/x"}}]
    assert judge(tmp_path, "claude", lines) == (None, "")
