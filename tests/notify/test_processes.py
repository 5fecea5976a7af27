"""Notifications of real processes to a real receiver: killed, down, slow; each message verified by the official package."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

from agent_orchestrator.runs.orchestrator import Orchestrator
from tests.acceptance.rig import Result, wait_until
from tests.notify.receiver import Receiver
from tests.notify.rig import NotifyRig
from tests.stores import IS_SHARED, OWN_STORE

PATIENCE_S = 60.0


def hook(port: int, more: str = "") -> str:
    return f'name = "hook"\nurl = "http://127.0.0.1:{port}/hook"\nsecret_env = "HOOK_SECRET"\n{more}'


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def tries(repo: Path) -> list[int]:
    """Return how often each waiting message was tried."""
    with Orchestrator(str(repo)) as orchestrator:
        waiting = orchestrator.store.outbox.deliveries("hook") if orchestrator.has_store else []
        return [json.loads(one.body).get("tries", 0) for one in waiting]


def deliver(rig: NotifyRig) -> Result:
    """Deliver what waits; by a server, once the turn of the process that was killed is over."""
    sent = rig.orc("notify", "send", "--json")
    while IS_SHARED and any(one["problem"] == "another process is delivering" for one in sent.json["subscribers"]):
        sent = rig.orc("notify", "send", "--json")
    return sent


def test_killed_between_fact_and_delivery_each_fact_has_one_verified_id(rig: NotifyRig) -> None:
    port = free_port()
    rig.configure(hook(port))
    running = rig.start_run()
    wait_until(lambda: tries(rig.repo) not in ([], [0]), PATIENCE_S)
    running.signal(signal.SIGKILL)
    running.process.wait(PATIENCE_S)
    with Receiver(port=port) as receiver:
        assert rig.orc("approve").code == 0
        assert deliver(rig).code == 0, "the question goes before what follows"
        resumed = rig.orc("resume")
        assert resumed.code == 0, resumed
        kinds = [one.verify()["type"] for one in receiver.received]
        assert kinds == ["run.person", "run.done"]
        assert len({one.id for one in receiver.received}) == 2
    assert tries(rig.repo) == []


def test_killed_while_the_receiver_has_it_the_same_id_comes_again(rig: NotifyRig) -> None:
    with Receiver() as receiver:
        rig.configure(hook(receiver.port))
        receiver.holds.clear()
        running = rig.start_run()
        wait_until(lambda: receiver.received, PATIENCE_S)
        running.signal(signal.SIGKILL)
        running.process.wait(PATIENCE_S)
        receiver.holds.set()
        sent = deliver(rig)
        assert (sent.code, sent.json["subscribers"]) == (0, [{"name": "hook", "waiting": 0, "problem": None}])
        first, again = receiver.received
        assert first.id == again.id
        assert first.body == again.body
        assert first.verify() == again.verify()


def test_a_receiver_that_fails_three_times_gets_everything_in_order(rig: NotifyRig) -> None:
    with Receiver(None, 503, *[500] * 1000) as receiver:
        rig.configure(hook(receiver.port))
        left = rig.run("--no-wait")
        assert left.code == 4, left
        assert rig.orc("approve").code == 0
        assert rig.orc("resume").code == 0
        while len(receiver.received) < 3:
            assert rig.orc("notify", "send").code == 1
        listed = rig.orc("notify", "list", "--json").json["subscribers"]
        assert [(one["waiting"], one["given_up"], one["problem"]) for one in listed] == [(2, 0, "HTTP 500")]
        receiver.answers.clear()
        assert rig.orc("notify", "send").code == 0
        *tries, last = [one.verify()["type"] for one in receiver.received]
        assert (set(tries), last) == ({"run.person"}, "run.done"), "nothing overtakes what failed"
        assert len({one.id for one in receiver.received}) == 2


def test_a_receiver_that_never_answers_does_not_keep_a_run(rig: NotifyRig) -> None:
    with Receiver() as receiver:
        receiver.holds.clear()
        rig.configure(hook(receiver.port, 'on = ["done"]'))
        rig.workflow("name: one\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md}\n")
        ended = rig.run()
        assert ended.code == 0, ended
        assert "completed: 1/1 steps" in ended.out
        assert len(tries(rig.repo)) == 1, "it waits for the next process"


def test_who_serves_the_page_delivers_what_waits_and_what_others_do(rig: NotifyRig) -> None:
    with Receiver() as receiver:
        rig.configure(hook(free_port(), 'on = ["person"]'))
        assert rig.run("--no-wait").code == 4
        rig.configure(hook(receiver.port, 'on = ["person", "done"]'))
        web = rig.start("web", "--port", "0")
        try:
            wait_until(lambda: receiver.received, PATIENCE_S)
            assert receiver.received[0].verify()["type"] == "run.person"
            assert rig.orc("approve").code == 0
            assert rig.orc("resume").code == 0
            wait_until(lambda: len(receiver.received) >= 2, PATIENCE_S)
            assert [one.verify()["type"] for one in receiver.received] == ["run.person", "run.done"]
        finally:
            os.kill(web.process.pid, signal.SIGINT)
            web.process.wait(PATIENCE_S)


@OWN_STORE
def test_a_thousand_failed_runs_in_one_process_are_two_messages(rig: NotifyRig) -> None:
    """The journal is written by the store itself: a thousand real runs would take minutes."""
    import msgspec

    from agent_orchestrator.core.ids import RunId
    from agent_orchestrator.core.summary import Summary
    from agent_orchestrator.store.port import Append
    from agent_orchestrator.store.sqlite import SqliteStore
    from agent_orchestrator.testing.store import new_run

    with Receiver() as receiver:
        rig.configure(hook(receiver.port))
        assert rig.run("--no-wait").code == 4
        assert len(receiver.received) == 1
        with Orchestrator(str(rig.repo)) as orchestrator:
            now_us = orchestrator.clock.now_us()
        store = SqliteStore(rig.repo / ".git" / "orc")
        body = msgspec.json.encode([{"event": "ended", "stop": "failed", "detail": "*x*"}])
        for number in range(1_000):
            store.create(*new_run(RunId(f"r{number}"), now_us))
        ended = Summary(status="failed")
        store.append([Append(run=RunId(f"r{n}"), expected_seq=1, at_us=now_us, body=body, summary=ended) for n in range(1_000)])
        store.close()
        assert rig.orc("approve").code == 0
        assert rig.orc("resume").code == 0
        failures = [one.verify()["data"]["count"] for one in receiver.received if one.json["type"] == "run.failed"]
        assert sum(failures) == 1_000
        assert len(failures) <= 2
