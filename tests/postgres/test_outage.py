"""Real `orc` on a real server that is stopped and started in the middle: everything is done once, and people are told."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent_orchestrator.store.postgres import PostgresStore, install
from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.postgres.proxy import Cut, proxied
from tests.postgres.server import PostgresServer, frozen, shared_server


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()


class ServedRig(Rig):
    """A repository whose runs are kept by a server."""

    def __init__(self, repo: Path, address: str) -> None:
        super().__init__(repo)
        self._address = address

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return super().environment({"ORC_STORE": self._address, **(more or {})})


@pytest.fixture
def rig(repo: Path, server: PostgresServer) -> Rig:
    address = server.make_database()
    install(address)
    return ServedRig(repo, address)


ONCE = ["one planning 0 1", "one coding 0 1", "one code_review 0 1"]


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT], ids=["crash", "shutdown"])
def test_a_server_that_goes_while_an_agent_works_delays_the_run_and_nothing_else(
    rig: Rig, server: PostgresServer, how: signal.Signals
) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    server.stop(how)
    rig.open("go")
    wait_until(lambda: "is away" in running.said())
    assert rig.launches() == ONCE[:1], "nothing goes on before what happened is written down"
    status = rig.orc("status", "one")
    assert (status.code, status.out) == (3, "")
    assert len(status.err.splitlines()) == 1
    assert "is away" in status.err
    server.start()
    done = running.end()
    assert done.code == 0, done
    assert rig.launches() == ONCE
    assert rig.orc("status", "one", "--json").json["status"] == "completed"
    assert {step["status"] for step in rig.state("one")["steps"].values()} == {"COMPLETED"}, "the state file says so, too"


def test_a_server_that_freezes_is_away_until_it_thaws(rig: Rig, server: PostgresServer) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    with frozen(server.list_processes()):
        rig.open("go")
        wait_until(lambda: "is away or does not answer" in running.said())
        status = rig.orc("status", "one")
        assert (status.code, status.out) == (3, "")
        assert "is away" in status.err
        assert rig.launches() == ONCE[:1], "nothing goes on before what happened is written down"
    done = running.end()
    assert done.code == 0, done
    assert rig.launches() == ONCE


def test_whoever_watches_is_told_and_goes_on_watching(rig: Rig, server: PostgresServer) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    watching = rig.start("watch", "one")
    watching.wait_for("planning")
    server.stop(signal.SIGQUIT)
    wait_until(lambda: "Watching goes on when it is back" in watching.complained())
    server.start()
    rig.open("go")
    assert running.end().code == 0
    watched = watching.end()
    assert watched.code == 0, watched
    assert "code_review  completed" in watched.out


def test_a_server_that_crashes_again_and_again_loses_and_doubles_nothing(rig: Rig, server: PostgresServer) -> None:
    rig.play({"planning": {"until": "a"}, "coding": {"until": "b"}, "code_review": {"until": "c"}})
    running = rig.start_run("--run-id", "one")
    for step, name in (("planning", "a"), ("coding", "b"), ("code_review", "c")):
        wait_until(lambda step=step: bool(rig.launches(step)))  # type: ignore[misc]
        server.stop(signal.SIGQUIT)
        rig.open(name)
        server.start()
    done = running.end()
    assert done.code == 0, done
    assert rig.launches() == ONCE
    found = rig.orc("store", "check", "--json").json
    assert found, "the journals are whole"


def test_a_server_that_is_away_at_the_start_is_one_sentence(rig: Rig, server: PostgresServer) -> None:
    server.stop()
    for result in (rig.run("--run-id", "one"), rig.orc("list"), rig.orc("resume", "one"), rig.orc("pause", "one")):
        assert (result.code, result.out) == (3, ""), result
        assert result.err.startswith("orc: The store at 127.0.0.1:"), result
        assert len(result.err.splitlines()) == 1, result
    assert rig.launches() == []


def test_whoever_drives_lets_go_while_the_server_is_away_and_another_goes_on(rig: Rig, server: PostgresServer) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    server.stop(signal.SIGQUIT)
    rig.open("go")
    wait_until(lambda: "is away" in running.said())
    running.process.send_signal(signal.SIGTERM)
    running.end()
    server.start()
    resumed = rig.orc("resume", "one")
    assert resumed.code == 0, resumed
    assert rig.launches() == ONCE, "the agent that ended meanwhile is collected"


def test_a_run_whose_driver_was_killed_is_taken_up_at_once_on_the_same_machine(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    busy = rig.orc("resume", "one")
    assert busy.code == 3
    assert f"running in another process (process {running.process.pid} on " in busy.err
    running.process.kill()
    running.process.wait()
    rig.open("go")
    assert rig.orc("resume", "one").code == 0
    assert rig.launches() == ONCE


def test_an_answer_reaches_a_run_that_another_process_drives(rig: Rig) -> None:
    rig.workflow(HUMAN)
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: rig.orc("status", "one", "--json").json.get("status") == "waiting")
    assert rig.orc("approve", "one").code == 0
    assert running.end().code == 0
    assert json.loads(rig.orc("show", "one", "--json").out)["status"] == "completed"


@pytest.mark.parametrize("seed", range(2))
def test_a_line_that_breaks_at_random_loses_and_doubles_nothing(seed: int, repo: Path) -> None:
    server = shared_server()
    address = server.make_database()
    install(address)
    with proxied(server.port) as proxy:
        rig = ServedRig(repo, address.replace(f":{server.port}/", f":{proxy.port}/"))
        rig.play({"planning": {"until": "go"}})
        running = rig.start_run("--run-id", "one")
        wait_until(lambda: bool(rig.launches("planning")))
        name = rig.orc("store", "check", "--json").json["repository"]
        proxy.cut_next(Cut.ANSWER)
        proxy.cut_by_chance(seed)
        rig.open("go")
        wait_until(lambda: bool(rig.launches("code_review")), seconds=120)
        done = running.end()
        assert done.code == 0, done
        assert rig.launches() == ONCE
        assert proxy.cuts > 0
    store = PostgresStore(address, name)
    assert store.health()[1] == []
    store.close()
