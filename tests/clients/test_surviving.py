"""Real clients are stopped, gone on with in their own session, and outlive the orchestrator."""

from __future__ import annotations

import json
import shutil
import signal

import pytest

from agent_orchestrator.testing.model_server import Broken, Held, Lane, Reply, Write
from tests.clients.rig import Rig, charged, clients_of, counts, report, until

CLIENTS = ("claude", "codex")


def interrupted(client: str, rig: Rig) -> Lane:
    """A run whose client was stopped after its first call of the model, which had an answer."""
    lane = rig.lane(client, [Write("hello.txt", "hi"), Broken("silent")])
    rig.orc("run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one", "--detach")
    until(lambda: len(lane.requests) == 2)
    rig.orc("pause", "one", "--now")
    until(lambda: rig.launches("one")[0].get("ended_us"))
    assert rig.launches("one")[0]["failure"] == "stopped"
    assert clients_of(rig.repo) == []
    return lane


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_stopped_goes_on_in_its_session(client: str, rig: Rig) -> None:
    before = interrupted(client, rig)
    second = rig.lane(client, [Reply(report())])  # under the same address: a run keeps its settings
    rig.orc("resume", "one")
    first, last = rig.launches("one")
    assert first["session"] == last["session"]
    assert "failure" not in last
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    told = json.dumps(second.requests[0])
    assert "You were stopped in the middle of this task" in told
    assert "hello.txt" in told, "the session remembers what it did"
    assert counts(rig.usage("one")) == counts([before.charged, second.charged])


@pytest.mark.parametrize("client", CLIENTS)
def test_words_that_are_said_now_reach_a_client_at_work_in_its_session(client: str, rig: Rig) -> None:
    lane = rig.lane(client, [Write("hello.txt", "hi"), Broken("silent"), Reply(report())])
    rig.orc("run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one", "--detach")
    until(lambda: len(lane.requests) == 2)
    rig.orc("steer", "one", "work", "The fault is in the lexer", "--now")
    until(lambda: rig.state("one")["steps"]["work"]["status"] == "COMPLETED")
    first, last = rig.launches("one")
    assert first["session"] == last["session"]
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    told = json.dumps(lane.requests[2])
    assert "The fault is in the lexer" in told
    assert "hello.txt" in told, "the session remembers what it did"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_that_is_gone_is_replaced_by_a_fresh_one_in_the_same_attempt(client: str, rig: Rig) -> None:
    before = interrupted(client, rig)
    shutil.rmtree(rig.home)
    (rig.home / ".codex").mkdir(parents=True)
    lane = rig.lane(client, [Reply(report())])
    rig.orc("resume", "one")
    first, lost, last = rig.launches("one")
    assert (lost["failure"], last.get("failure")) == ("session_lost", None)
    assert first["session"] != last["session"]
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    used, least, most = counts(rig.usage("one")), charged(lane), counts([before.charged, lane.charged])
    if client == "claude":  # it says what a call took when the call begins, and its words when the session ends
        assert least["output_tokens"] < used.pop("output_tokens") <= most.pop("output_tokens")
    assert used == most


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_outlives_an_orchestrator_that_is_killed_and_is_adopted(client: str, rig: Rig) -> None:
    lane = rig.lane(client, [Write("hello.txt", "hi"), Held(Reply(report(artifacts=["hello.txt"])))])
    process = rig.start("run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one")
    until(lambda: len(lane.requests) == 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert clients_of(rig.repo) != []
    lane.let_go.set()
    rig.orc("resume", "one")
    (launch,) = rig.launches("one")
    assert launch["exit_code"] == 0
    assert rig.state("one")["steps"]["work"]["artifacts"] == ["hello.txt"]
    assert len(lane.requests) == 2
    assert counts(rig.usage("one")) == charged(lane)
