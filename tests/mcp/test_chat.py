"""A chat drives runs by `orc mcp`: it starts, waits for, reads and directs them, and each of its calls counts once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_orchestrator.core.events import Aborted, Paused, Resumed, UnitSteered
from agent_orchestrator.core.who import Surface
from tests.mcp.chat import WAITS, Chat, HttpServer, Place

TOOLS = [
    *("abort_run", "diff_run", "list_runs", "pause_run", "resume_run"),
    *("run_logs", "run_status", "start_run", "steer_run", "wait_run"),
]
MAKES_A_FILE = "echo the agent speaks; echo made > made.txt\n"


def test_a_chat_starts_a_run_waits_for_it_and_reads_what_it_did(tmp_path: Path) -> None:
    place = Place(tmp_path, MAKES_A_FILE)

    async def say(chat: Chat) -> None:
        assert await chat.tools() == TOOLS
        started = await chat.call("start_run", request_id="first", workflow="workflow.yaml")
        run = started["run_id"]
        ended = await chat.wait(run)
        assert (ended["status"], ended["waited_until"]) == ("completed", "ended")
        assert "diff_run" in ended["next"]
        assert [unit["status"] for unit in ended["units"]] == ["COMPLETED"]
        assert "the agent speaks" in (await chat.call("run_logs", run_id=run))["text"]
        assert "+made" in (await chat.call("diff_run", run_id=run))["works"][0]["diff"]
        assert [one["run_id"] for one in (await chat.call("list_runs"))["runs"]] == [run]
        report = (await chat.client.read_resource(f"orc://runs/{run}/report")).contents[0]
        state = (await chat.client.read_resource(f"orc://runs/{run}/state")).contents[0]
        assert "Finished" in report.text  # type: ignore[union-attr]
        assert json.loads(state.text)["run_id"] == run  # type: ignore[union-attr]

    place.talk(say)
    assert len(place.runs()) == 1


def test_a_task_in_words_is_done_in_a_tree_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path, "")

    async def say(chat: Chat) -> None:
        started = await chat.call("start_run", request_id="task", task="echo made > made.txt; exit 0", no_check=True)
        assert (await chat.wait(started["run_id"]))["status"] == "completed"
        changed = await chat.call("diff_run", run_id=started["run_id"])
        assert [file["path"] for file in changed["works"][0]["files"]] == ["made.txt"]
        assert changed["works"][0]["branch"] == f"orc/{started['run_id']}"

    place.talk(say)


def test_every_call_that_changes_something_counts_once(tmp_path: Path) -> None:
    place = Place(tmp_path, WAITS)
    found: dict[str, str] = {}

    async def say(chat: Chat) -> None:
        first = await chat.call("start_run", request_id="one", workflow="workflow.yaml")
        again = await chat.call("start_run", request_id="one", workflow="workflow.yaml")
        run = found["run"] = first["run_id"]
        assert (again["run_id"], first["repeated"], again["repeated"]) == (run, False, True)
        calls: dict[str, dict[str, Any]] = {
            "steer_run": {"words": "mind the tests"},
            "pause_run": {"now": True},
            "resume_run": {},
            "abort_run": {},
        }
        for tool, more in calls.items():
            assert not (await chat.call(tool, run_id=run, request_id=tool, **more))["repeated"]
            told = await chat.call(tool, run_id=run, request_id=tool, **more)
            assert told["repeated"], tool
            assert "nothing was sent again" in told["message"]
            if tool == "pause_run":
                assert (await chat.wait(run))["waited_until"] == "not_running"
        assert (await chat.wait(run))["status"] == "aborted"
        # A repeated call to continue does not continue a run that was stopped since.
        assert (await chat.call("resume_run", run_id=run, request_id="resume_run"))["repeated"]

    place.talk(say)
    for kind in (UnitSteered, Paused, Resumed, Aborted):
        told = place.events(found["run"], kind)
        assert len(told) == 1, kind
    assert place.events(found["run"], Aborted)[0].who.surface is Surface.MCP
    assert place.runs() == [found["run"]]


def test_what_cannot_be_done_is_told_in_one_sentence(tmp_path: Path) -> None:
    place = Place(tmp_path, "true\n")
    (tmp_path / "outside.yaml").write_text("name: outside\nsteps: []\n")

    async def say(chat: Chat) -> None:
        assert (
            await chat.fail("run_status", run_id="nope") == f"There is no run 'nope' in {place.repo}; `orc list` shows the runs."
        )
        both = await chat.fail("start_run", request_id="a", task="x", workflow="workflow.yaml")
        assert both == "Give either a task, in words, or a workflow file of the repository."
        assert "lies outside the repository" in await chat.fail("start_run", request_id="a", workflow="../outside.yaml")
        assert "does not exist" in await chat.fail("start_run", request_id="a", workflow="none.yaml")
        assert "request_id is '': it must be an id" in await chat.fail("start_run", request_id="", task="x")
        assert "nobody" in await chat.fail("start_run", request_id="b", workflow="workflow.yaml", agent="nobody")
        # An option of the command line in a task is words.
        run = (await chat.call("start_run", request_id="c", task="--help", no_check=True))["run_id"]
        await chat.wait(run)
        assert "UnknownUnit" not in (said := await chat.fail("run_logs", run_id=run, unit="nope"))
        assert "nope" in said
        assert "has ended" in await chat.fail("pause_run", run_id=run, request_id="d", now=True)

    place.talk(say)


def test_a_chat_comes_by_http_with_the_key(tmp_path: Path) -> None:
    place = Place(tmp_path, MAKES_A_FILE)
    server = HttpServer(place)

    async def say(chat: Chat) -> None:
        started = await chat.call("start_run", request_id="first", workflow="workflow.yaml")
        assert (await chat.wait(started["run_id"]))["status"] == "completed"

    try:
        place.talk_http(server.url, server.key, say)
        place.talk_http(server.url, server.key, say, mode="legacy")
    finally:
        server.stop()
    assert len(place.runs()) == 1
    second = HttpServer(place)
    second.stop()
    assert second.key == server.key, "a client that was given the key may come again"
