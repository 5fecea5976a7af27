"""Agents of a run speak by its own MCP server: journaled, with a key of their launch, and never as a judge."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

from agent_orchestrator.core.events import AgentSpoke
from agent_orchestrator.core.inputs import Saying
from tests.acceptance.rig import wait_until
from tests.mcp.chat import Place
from tests.web.page import PageSession, Reply, send
from tests.web.server import Server

AGENT = """
import asyncio, json, os, sys, time
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
side = sys.argv[1]

def tell(name, found):
    with open(os.path.join(side, name + ".new"), "w") as file:
        json.dump(found, file)
    os.rename(os.path.join(side, name + ".new"), os.path.join(side, name))

async def talk():
    headers = {"Authorization": "Bearer " + os.environ["ORC_MCP_KEY"]}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as sender:
        async with Client(streamable_http_client(os.environ["ORC_MCP_URL"], http_client=sender)) as client:
            tools = sorted(tool.name for tool in (await client.list_tools()).tools)
            said = []
            for name, given in json.load(open(os.path.join(side, "calls.json"))):
                done = await client.call_tool(name, given)
                said.append([done.is_error, done.content[0].text])
            return {"tools": tools, "said": said}

tell("door", {name: os.environ[name] for name in ("ORC_MCP_URL", "ORC_MCP_KEY")})
while not os.path.exists(os.path.join(side, "go")):
    time.sleep(0.02)
tell("told", asyncio.run(talk()))
json.dump({"status": "COMPLETED"}, open(os.environ["REPORT_PATH"], "w"))
"""
CALLS: list[Any] = [
    ["note_progress", {"text": "halfway"}],
    ["note_progress", {"text": "halfway"}],
    ["ask_person", {"question": "Which port?"}],
    ["read_feedback", {"wait_s": 50}],
    ["approve", {"run_id": "it"}],
    ["note_progress", {"text": " "}],
]
TOOLS = ["ask_person", "note_progress", "read_feedback"]


class Inside:
    """A run whose agent has the server, and waits for a word before it speaks."""

    def __init__(self, folder: Path) -> None:
        self.side = folder / "side"
        self.side.mkdir()
        (self.side / "agent.py").write_text(AGENT)
        (self.side / "calls.json").write_text(json.dumps(CALLS))
        self.place = Place(folder, shlex.join([sys.executable, str(self.side / "agent.py"), str(self.side)]) + "\n")
        self.started = self.place.orc("run", "--workflow", "workflow.yaml", "--mcp", "--detach")
        self.run = self.started["run_id"]
        wait_until((self.side / "door").exists)
        found = json.loads((self.side / "door").read_text())
        self.url, self.key = found["ORC_MCP_URL"], found["ORC_MCP_KEY"]
        self.address = self.url.removeprefix("http://").partition("/")[0]

    def ask(self, **changed: str | None) -> Reply:
        """Send what a client would, from outside the launch, with some headers changed."""
        own: dict[str, str | None] = {"Host": self.address, "Authorization": f"Bearer {self.key}"}
        own |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **changed}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
        return send(self.address, "POST", "/mcp", {name: value for name, value in own.items() if value is not None}, body)

    def go(self) -> None:
        """Let the agent speak."""
        (self.side / "go").touch()

    def answer(self) -> None:
        """Answer its question once it is asked, as a person does."""
        wait_until(lambda: self.place.stands(self.run)[1] == ("work",))
        self.place.orc("steer", self.run, "work", "port 8080")

    def answer_on_the_page(self) -> None:
        """Answer its question on the page of `orc web`."""
        server = Server(self.place.folder, self.place.repo)
        try:
            page = PageSession(server.url)
            wait_until(lambda: page.get(f"/api/runs/{self.run}").json["questions"])
            (asked,) = page.get(f"/api/runs/{self.run}").json["questions"]
            assert (asked["text"], asked["in_words"]) == ("Which port?", True)
            assert page.get("/api/needs").json["needs"][0]["question"] == "Which port?"
            sent = page.direct(self.run, "answer", unit="work", text="port 8080", expect={"effect": asked["effect"]})
            assert sent.status == 202, sent.body
        finally:
            server.stop()

    def end(self) -> Any:
        """Wait for the end of the run, and return what the agent was told."""
        wait_until((self.side / "told").exists)
        wait_until(lambda: self.place.stands(self.run)[0] == "completed")
        return json.loads((self.side / "told").read_text())


def test_an_agent_notes_progress_asks_a_person_and_reads_the_answer(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    inside.go()
    wait_until(lambda: inside.place.stands(inside.run)[1] == ("work",))
    shown = inside.place.orc("show", inside.run)
    assert shown["spoken"] == [{"unit": "work", "text": "Which port?"}]
    waiting = inside.place.orc("report", "--since", "1d")["waiting"]["entries"][0]
    assert (waiting["why"], waiting["ways"]) == ("asks: Which port?", [f"orc steer {inside.run} work 'YOUR WORDS'"])
    inside.answer()
    told = inside.end()
    assert told["tools"] == TOOLS
    errors, texts = zip(*told["said"], strict=True)
    assert errors == (False, False, False, False, True, True), texts
    assert json.loads(texts[3]) == {"words": ["port 8080"]}
    assert "approve" in texts[4]
    spoken = [(one.saying, one.text, one.effect) for one in inside.place.events(inside.run, AgentSpoke)]
    launch = f"{inside.run}/work/i0.a1.l1.agent"
    assert spoken == [
        (Saying.NOTE, "halfway", launch),
        (Saying.QUESTION, "Which port?", launch),
        (Saying.HEARD, "", launch),
    ], "the same words of a launch count once"
    assert inside.place.orc("status", inside.run)["asks"] == []


def test_an_agent_that_outlives_its_driver_finds_the_server_of_the_next_one(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    assert inside.ask().status not in (401, 403, 404, 421)
    os.kill(inside.started["pid"], signal.SIGKILL)
    wait_until(lambda: not inside.place.stands(inside.run)[2])
    inside.place.orc("resume", inside.run, "--detach")
    inside.go()
    inside.answer_on_the_page()
    assert [error for error, _ in inside.end()["said"]][:4] == [False] * 4
    assert len(inside.place.events(inside.run, AgentSpoke)) == 3


def test_nobody_speaks_without_the_key_of_a_launch(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    sign, _, effect = inside.key.partition(".")
    forged = ("", "wrong", sign, f"{sign}.{effect.replace('work', 'other')}", f".{effect}", f"{sign}.{effect}/x", f"{sign}.a/b/c")
    for key in forged:
        assert (inside.ask(Authorization=f"Bearer {key}").status, key) == (401, key)
    assert inside.ask(Authorization=None).status == 401
    assert inside.ask(Host="evil.example").status == 421
    for origin in ("http://evil.example", f"http://{inside.address}", "null"):
        assert inside.ask(Origin=origin).status == 403
    inside.go()
    wait_until(lambda: inside.place.stands(inside.run)[1] == ("work",))
    inside.place.orc("abort", inside.run)
    wait_until(lambda: not inside.place.stands(inside.run)[2])
    stopped = inside.place.orc("status", inside.run)
    assert (stopped["status"], stopped["asks"]) == ("aborted", []), "nobody waits for an agent that waited for an answer"
