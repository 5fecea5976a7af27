"""`orc mcp` killed with -9 in the middle of a call: the call made again, of another server, counts once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.events import UnitSteered
from agent_orchestrator.runs.orchestrator import Orchestrator
from tests.acceptance.rig import ORC, WAIT_S, wait_until
from tests.mcp.chat import WAITS, Place

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Wire:
    """A server and the lines of the protocol, so that it can be killed between a question and its answer."""

    def __init__(self, place: Place) -> None:
        words = [*ORC, "mcp", "--repo", str(place.repo)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, env=place.environ, stdin=pipe, stdout=pipe, text=True)
        self.send("initialize", HELLO, number=0)
        self.read()
        self.send("notifications/initialized")

    def send(self, method: str, params: dict[str, Any] | None = None, number: int | None = None) -> None:
        """Send a message, and do not wait."""
        said = {"jsonrpc": "2.0", "method": method, "params": params or {}, **({"id": number} if number is not None else {})}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read the next answer."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def begin(self, tool: str, **given: Any) -> None:
        """Begin a call."""
        self.send("tools/call", {"name": tool, "arguments": given}, number=1)

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Make a call and return what it tells."""
        self.begin(tool, **given)
        while (answer := self.read()).get("id") != 1:
            pass
        found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
        return found

    def kill(self) -> None:
        """Kill it with -9."""
        self.process.kill()
        self.process.wait(WAIT_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def count_runs(place: Place) -> int:
    with Orchestrator(place.repo) as orchestrator:
        return orchestrator.count().total


MOMENTS: dict[str, Callable[[Place], bool]] = {
    "the call was only sent": lambda place: True,
    "the run stands in the store": lambda place: count_runs(place) == 1,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_a_killed_server_was_starting_is_started_once(tmp_path: Path, moment: str) -> None:
    place = Place(tmp_path, 'echo here >> "$REPO_DIR/../launches.log"\n')
    first = Wire(place)
    first.begin("start_run", request_id="one", workflow="workflow.yaml")
    wait_until(lambda: MOMENTS[moment](place))
    first.kill()
    second = Wire(place)
    run = second.call("start_run", request_id="one", workflow="workflow.yaml")["run_id"]
    wait_until(lambda: second.call("wait_run", run_id=run, timeout_s=5)["waited_until"] == "ended")
    assert second.call("run_status", run_id=run)["status"] == "completed"
    second.kill()
    assert count_runs(place) == 1
    assert (tmp_path / "launches.log").read_text() == "here\n", "the agent was launched once"


def test_words_that_a_killed_server_was_sending_are_told_once(tmp_path: Path) -> None:
    place = Place(tmp_path, WAITS)
    first = Wire(place)
    run = first.call("start_run", request_id="one", workflow="workflow.yaml")["run_id"]
    first.begin("steer_run", run_id=run, words="mind the tests", request_id="two")
    first.kill()
    second = Wire(place)
    second.call("steer_run", run_id=run, words="mind the tests", request_id="two")
    wait_until(lambda: place.events(run, UnitSteered))
    second.call("abort_run", run_id=run, request_id="three")
    wait_until(lambda: second.call("wait_run", run_id=run, timeout_s=5)["waited_until"] == "ended")
    second.kill()
    assert len(place.events(run, UnitSteered)) == 1


def test_a_client_that_leaves_in_the_middle_of_a_wait_does_not_keep_the_server(tmp_path: Path) -> None:
    place = Place(tmp_path, WAITS)
    run = place.orc("run", "--workflow", "workflow.yaml", "--detach")["run_id"]
    wire = Wire(place)
    wire.begin("wait_run", run_id=run, timeout_s=600)
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    assert wire.process.wait(WAIT_S) == 0
    assert wire.process.stdout is not None
    wire.process.stdout.close()
    place.orc("abort", run)
