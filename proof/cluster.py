"""PostgreSQL and workers: answers that get lost, workers that freeze or are cut off exactly where it hurts, and all together.

The runs and their judges are those of `tests/cluster`, and the small runs of `proof.subjects` behind the proxy of
`tests/postgres`. Every trial has a server of its own.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.runs.exits import ENVIRONMENT
from agent_orchestrator.store.port import Append
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.testing.store import new_run
from proof.subjects import open_subject
from proof.trial import SYSTEMS, Kind, Trial
from tests.acceptance.rig import ROOT
from tests.cluster.relay import Fault, Relay
from tests.cluster.stops import PLACES
from tests.conftest import make_repo, pytest_configure
from tests.postgres.proxy import proxied
from tests.postgres.server import PostgresServer

T = TypeVar("T")
LEGS = 6
"""Workers that one run is lost by."""
FREEZE_ROUNDS, CUT_ROUNDS = 36, 18
ANSWER_ROUNDS, RUN_ROUNDS = 8, 2
ANSWERS, WRITERS = 130, 4
"""Exchanges that are cut off in one trial of a store, and the threads that write meanwhile."""
FAULTS = 100
TIMES = {"append": 4, "lease": 2, "claim": 1, "launch": 2, "push": 3}
"""How late, at most, a worker is at the place: it must not have finished the run by then."""


def plan_answers(seed: int, scale: float) -> Iterator[Trial]:
    """A store by itself, then a few runs of every system."""
    for number in range(max(1, round(ANSWER_ROUNDS * scale))):
        yield Trial("answer", "any", (seed + number,))
    for number in range(max(1, round(RUN_ROUNDS * scale))):
        for system in SYSTEMS:
            yield Trial("answer", system, (seed + number,))


def plan_freezes(seed: int, scale: float) -> Iterator[Trial]:
    """Some relays."""
    for number in range(max(1, round(FREEZE_ROUNDS * scale))):
        yield Trial("thaw", "workflow", (seed + number,))


def plan_cuts(seed: int, scale: float) -> Iterator[Trial]:
    """Some relays."""
    for number in range(max(1, round(CUT_ROUNDS * scale))):
        yield Trial("cut", "workflow", (seed + number,))


def plan_storms(seed: int, scale: float) -> Iterator[Trial]:
    """One of many faults; network namespaces need root."""
    if os.getuid() == 0:
        yield Trial("cluster", "workflow", (seed, max(5, round(FAULTS * scale))))


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """Start a server for one trial."""
    pytest_configure()
    server = PostgresServer()
    try:
        yield server
    finally:
        server.remove()


def play_answers(trial: Trial, folder: Path) -> int:
    """Cut exchanges off by chance: everything is written once, and whoever asked gets an answer."""
    with own_server() as server:
        address = server.make_database()
        install(address)
        with proxied(server.port) as proxy:
            through = address.replace(f":{server.port}/", f":{proxy.port}/")
            proxy.cut_by_chance(trial.numbers[0])
            if trial.system == "any":
                _write_much(address, through, lambda: proxy.cuts >= ANSWERS)
            else:
                _drive(trial.system, folder, address, through)
            proxy.cut_no_more()
            return proxy.cuts


def _write_much(address: str, through: str, enough: Callable[[], bool]) -> None:
    """Append to several runs at once until enough was lost, then count what is there."""
    written: dict[str, int] = {}
    failed: list[BaseException] = []

    def write(run: RunId) -> None:
        try:
            store = _insist(lambda: PostgresStore(through, "demo"))
            _insist(lambda: store.create(*new_run(run)))
            seq = 1
            while not enough():
                part = Append(run=run, expected_seq=seq, at_us=seq, body=b"[%d]" % seq)
                answer = _insist(lambda: store.append([part]))  # noqa: B023 - called at once
                assert answer == [None], f"{run} at {seq}: {answer}"
                _insist(lambda: store.post(run, f"{run}-{seq}", b"x", seq))  # noqa: B023 - called at once
                seq += 1
            written[run] = seq
            store.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(RunId(f"run-{number}"),)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    store = PostgresStore(address, "demo")
    for run, seq in written.items():
        bodies = [body for _, _, body in store.rows(RunId(run))]
        assert bodies[1:] == [b"[%d]" % number for number in range(1, seq)], f"{run}: {len(bodies)} rows for {seq}"
        assert len(store.inbox(RunId(run))) == seq - 1
    assert store.health()[1] == []
    store.close()


def _insist(do: Callable[[], T]) -> T:
    """Do something, again if it was not done because no connection was to be had: only that is said so."""
    while True:
        with suppress(StoreAway):
            return do()


def _drive(system: str, folder: Path, address: str, through: str) -> None:
    """Drive a real run through it, and take it up again if it says that its store was away for too long."""
    with open_subject(system, folder) as subject, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORC_STORE", address)  # Whoever looks and answers has a good line.
        subject.let_work(0.1)
        orc = subject.begin({"ORC_STORE": through})
        subject.attend(orc)
        while orc.end() == ENVIRONMENT:
            orc = subject.go_on({"ORC_STORE": through})
            subject.attend(orc)
        subject.check_end(orc)


def draw_faults(seed: int, hows: tuple[str, ...]) -> list[Fault]:
    """Draw the faults of one relay."""
    chance = random.Random(seed)
    drawn = []
    for leg in range(LEGS):
        place = chance.choice([one for one in PLACES if leg or one != "claim/after"])
        how = chance.choice(hows)
        if place == "launch/before" and how == "whole":
            # What a host was about to start when all of it froze, it may start when it thaws: only a warden that is awake helps.
            how = "alone"
        drawn.append(Fault(place, chance.randint(1, TIMES[place.partition("/")[0]]), how))
    return drawn


def play_relay(trial: Trial, folder: Path) -> int:
    """Pass one run on from worker to worker."""
    hows = ("cut",) if trial.kind == "cut" else ("alone", "whole")
    folder.mkdir(parents=True)
    with own_server() as server:
        relay = Relay(make_repo(folder / "repo"), server)
        try:
            return relay.pass_on(draw_faults(trial.numbers[0], hows))
        finally:
            relay.close()


def play_storm(trial: Trial, folder: Path) -> int:
    """Play `make cluster` with faults by chance."""
    seed, faults = trial.numbers
    words = ("--runs", str(max(3, faults // 4)), "--faults", str(faults), "--seed", str(seed))
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.show", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    told = re.search(r"through (\d+) faults", done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert told is not None, done.stdout[-3000:]
    return int(told[1])


KINDS = (
    Kind(name="answer", unit="requests and answers of PostgreSQL cut off", plan=plan_answers, play=play_answers),
    Kind(name="thaw", unit="workers frozen at append, lease, claim, launch or push", plan=plan_freezes, play=play_relay),
    Kind(name="cut", unit="workers cut off there", plan=plan_cuts, play=play_relay),
    Kind(
        name="cluster", unit="faults of four workers, their networks and server", plan=plan_storms, play=play_storm, max_s=4_000
    ),
)
