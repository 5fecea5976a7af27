"""Every file in `cluster/placing/` that holds a placing keeps the same promises."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import pytest

import agent_orchestrator.cluster.placing
from agent_orchestrator.cluster.placing import choose_placing, make_placing
from agent_orchestrator.cluster.placing.port import DBOS, TABLE, Placing, Seat
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Claimed, Leases, Worker
from agent_orchestrator.testing.store import new_run
from tests.acceptance.rig import wait_until
from tests.cluster.rig import PATIENCE_S
from tests.postgres.server import shared_server

LONG_S, OVER_S, SOON_S = 600.0, -1.0, 0.01
LOOKS = 100
"""Each some twenty milliseconds: longer than DBOS needs between two looks of its own."""
CHOICES = {"TablePlacing": TABLE, "DbosPlacing": DBOS}


def placings() -> list[str]:
    found = []
    for module in pkgutil.iter_modules(agent_orchestrator.cluster.placing.__path__, "agent_orchestrator.cluster.placing."):
        loaded = importlib.import_module(module.name)
        names = (name for name, value in vars(loaded).items() if isinstance(value, type) and value.__module__ == loaded.__name__)
        found += [name for name in names if name.endswith("Placing") and name != "Placing"]
    return found


@cache
def database(choice: str) -> str:
    url = shared_server().make_database()
    install(url)
    cluster = Cluster(url)
    choose_placing(cluster, choice)
    assert cluster.read_placing() == choice
    cluster.close()
    return url


def join(leases: Leases, pool: str) -> None:
    leases.join(Worker(name=f"of-{pool}", host="h", boot="b", pid=1, pool=pool), LONG_S)


class Bench:
    """A worker's seat in a pool of its own, another worker of that pool, and a repository's runs."""

    def __init__(self, choice: str, pool: str, stack: ExitStack) -> None:
        self.pool, self._stack = pool, stack
        self.store = PostgresStore(database(choice), pool)
        stack.callback(self.store.close)
        self.cluster = Cluster(self.store.url)
        stack.callback(self.cluster.close)
        join(self.cluster.leases, pool)
        stack.callback(self.cluster.leases.leave)
        self.seat = Seat(cluster=self.cluster, name="ada", pool=pool, capacity=1, ttl_s=SOON_S, wake=lambda: None, say=print)
        self.placing: Placing = make_placing(choice, self.seat)

    def open(self) -> None:
        self.placing.open()
        self._stack.callback(self.placing.close)

    def queue(self, name: str, *, priority: int = 0, pool: str | None = None, ready_us: int = 0) -> RunId:
        run = RunId(name)
        self.store.create(*new_run(run))
        assert self.store.leases.queue(run, pool or self.pool, priority=priority, ready_us=ready_us)
        return run

    def wait_for(self) -> Claimed:
        """Return the next run that is placed here."""
        found: list[Claimed] = []

        def is_there() -> bool:
            self.placing.settle(found)
            self.placing.is_waiting()
            found.extend(self.placing.take(1))
            return bool(found)

        wait_until(is_there, PATIENCE_S)
        (one,) = found
        return one

    def watch(self, *driven: Claimed) -> None:
        """Look so often, while a run is driven, that whatever can happen by itself has happened; nothing may be placed here."""
        looks = iter(range(LOOKS))

        def is_enough() -> bool:
            self.placing.settle(driven)
            self.placing.is_waiting()
            assert self.placing.take(0) == []
            return next(looks, None) is None

        wait_until(is_enough, PATIENCE_S)

    def end(self, claimed: Claimed, ready_us: int | None = None) -> None:
        """Let go of a run that was driven here."""
        self.store.leases.share(self.cluster.leases, claimed)
        assert self.store.leases.release(claimed.run, ready_us) is not None


@pytest.fixture(params=placings())
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(CHOICES[request.param], request.node.originalname.replace("_", "-"), stack)


def test_the_most_urgent_run_is_placed_first_and_each_once(bench: Bench) -> None:
    bench.queue("slow", priority=-5)
    bench.queue("usual")
    bench.queue("urgent", priority=9)
    bench.queue("elsewhere", pool="another")
    bench.queue("later", ready_us=2**60)
    bench.open()
    order = []
    for _ in range(3):
        claimed = bench.wait_for()
        assert claimed.epoch == 1
        order.append(claimed.run)
        bench.end(claimed)
    assert order == ["urgent", "usual", "slow"]
    assert bench.cluster.list_claimed() == []


def test_a_run_that_was_given_back_is_placed_again(bench: Bench) -> None:
    bench.queue("run")
    bench.open()
    first = bench.wait_for()
    bench.end(first, ready_us=0)
    assert bench.wait_for() == Claimed(bench.pool, first.run, 2)


def test_a_run_whose_priority_changes_while_it_waits_goes_by_the_new_one(bench: Bench) -> None:
    bench.open()
    bench.queue("first")
    first = bench.wait_for()
    waiting = [bench.queue("second"), bench.queue("third")]
    bench.watch(first)
    assert bench.store.leases.queue(waiting[1], bench.pool, priority=5)
    bench.watch(first)
    bench.end(first)
    second = bench.wait_for()
    bench.end(second)
    assert [second.run, bench.wait_for().run] == waiting[::-1]


def test_a_worker_without_room_takes_nothing_and_the_run_stays_for_all(bench: Bench) -> None:
    run = bench.queue("run")
    bench.open()
    bench.watch()
    assert bench.wait_for().run == run


def test_no_more_runs_of_a_repository_are_placed_than_its_limit(bench: Bench) -> None:
    bench.cluster.limit(bench.pool, 1)
    for name in ("one", "two"):
        bench.queue(name)
    bench.open()
    first = bench.wait_for()
    bench.watch(first)
    assert bench.placing.take(1) == []
    bench.end(first)
    assert bench.wait_for().run != first.run


def test_what_a_dead_worker_left_is_placed_again(bench: Bench) -> None:
    run = bench.queue("run")
    dead = PostgresStore(bench.store.url, bench.pool)
    join(dead.leases, bench.pool)
    assert [one.run for one in dead.leases.claim(bench.pool, 1)] == [run]
    bench.open()
    assert bench.placing.take(1) == [], "its lease holds"
    dead.leases.beat(OVER_S)
    assert bench.wait_for() == Claimed(bench.pool, run, 2)
    dead.close()


def test_a_run_that_another_worker_claimed_is_left_to_it(bench: Bench) -> None:
    run = bench.queue("run")
    bench.open()
    other = PostgresStore(bench.store.url, bench.pool)
    join(other.leases, bench.pool)
    assert [one.run for one in other.leases.claim(bench.pool, 1)] == [run]
    second = bench.queue("second")
    assert bench.wait_for().run == second
    assert bench.cluster.list_claimed() == [Claimed(bench.pool, second, 1)]
    other.close()


def test_a_worker_that_leaves_is_offered_nothing_more(bench: Bench) -> None:
    bench.queue("one")
    bench.open()
    first = bench.wait_for()
    bench.placing.leave()
    bench.placing.leave()
    bench.queue("two")
    assert bench.placing.take(0) == []
    bench.end(first)
    bench.placing.settle([])


def test_what_is_not_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dbos", None)
    monkeypatch.delitem(sys.modules, "agent_orchestrator.cluster.placing.dbos", raising=False)
    with ExitStack() as stack, pytest.raises(Unavailable, match=r"dbos is not installed: pip install 'orc-agents\[dbos\]'"):
        Bench(DBOS, "bare", stack)


def test_the_choice_is_kept_while_workers_live() -> None:
    url = shared_server().make_database()
    install(url)
    cluster = Cluster(url)
    choose_placing(cluster, TABLE)
    join(cluster.leases, "p")
    choose_placing(cluster, TABLE)
    assert not cluster.choose_placing(DBOS)
    with pytest.raises(Refused, match="drain them first"):
        choose_placing(cluster, DBOS)
    cluster.leases.leave()
    choose_placing(cluster, DBOS)
    assert cluster.read_placing() == DBOS
    cluster.close()
