"""`check_leases`: the promises of a store whose runs are driven by processes on many hosts: only one drives, and no word is lost.

Give it a function that opens the same store again, as another process would. Each process is a connection of its own.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import msgspec

from agent_orchestrator.core.ids import EffectId, RunId, UnitId, effect_id
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.errors import Conflict, Fenced
from agent_orchestrator.store.port import Append, StartingAgent
from agent_orchestrator.store.postgres import PostgresStore
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Leases, Worker
from agent_orchestrator.testing.store import new_run

LONG_S, OVER_S = 600.0, -1.0
RACES = 40


def check_leases(make: Callable[[], Callable[[], PostgresStore]]) -> None:
    """Run every check on a fresh store each, opened as often as the check needs."""
    for check in (
        _one_process_drives_a_run,
        _whoever_is_fenced_writes_nothing,
        _a_run_is_driven_by_whoever_makes_it,
        _a_renamed_run_is_nobodys,
        _only_a_lease_that_is_over_is_taken_over,
        _whoever_judges_has_held_its_own_lease,
        _a_queued_run_is_claimed_once,
        _a_directive_and_a_release_never_overlook_each_other,
        _one_process_delivers_to_a_reader,
        _an_account_has_no_more_agents_at_work_than_it_may,
    ):
        with ExitStack() as stack:
            check(partial(_open, make(), stack))


def _open(open_again: Callable[[], PostgresStore], stack: ExitStack) -> PostgresStore:
    store = open_again()
    stack.callback(store.close)
    return store


Another = Callable[[], "PostgresStore"]


def _join(store: PostgresStore, lease_s: float = LONG_S, pool: str = "") -> Leases:
    store.leases.join(Worker(name="w", host="h", boot="b", pid=1, pool=pool, capacity=9), lease_s)
    return store.leases


def _numbered(number: int) -> RunId:
    return RunId(f"run-{number}")


def _part(run: RunId, seq: int) -> Append:
    return Append(run=run, expected_seq=seq, at_us=seq, body=b"[]")


def _one_process_drives_a_run(another: Another) -> None:
    one, two, run = another(), another(), RunId("one")
    one.create(*new_run(run))
    assert _join(one).own(run) == 1
    answer = _join(two).own(run)
    assert not isinstance(answer, int), "two processes drive one run"
    assert (answer.worker, answer.over) == (one.leases.worker, False), "whoever is refused is told by whom"
    assert not isinstance(one.leases.own(run), int), "not even the same process takes it up twice"
    assert one.append([_part(run, 1)]) == [None]
    assert isinstance(two.append([_part(run, 2)])[0], Fenced), "only the driver writes"
    assert one.leases.release(run) == "resting"
    assert two.append([_part(run, 2)]) == [None], "what nobody drives may be written to"
    assert two.leases.own(run) == 2, "each taking-up has an epoch of its own"


def _whoever_is_fenced_writes_nothing(another: Another) -> None:
    old, new, run = another(), another(), RunId("one")
    old.create(*new_run(run))
    _join(old, OVER_S)
    old.leases.beat(LONG_S)
    assert old.leases.own(run) == 1
    old.leases.beat(OVER_S)
    assert _join(new).own(run) == 2, "a lease that is over holds nobody up"
    printed = (Printed(path="a", identity=Identity(inode=1, mtime_ns=1, size=1, sha256="x")),)
    for part in (
        _part(run, 1),
        Append(run=run, expected_seq=0, at_us=9, summary=Summary(status="failed")),
        Append(run=run, expected_seq=0, at_us=9, printed=printed),
        Append(run=run, expected_seq=0, at_us=9, epoch=1, release_all=True),
    ):
        assert isinstance(old.append([part])[0], Fenced), part
    try:
        old.reserve(run, EffectId("one/a"), (0.0, 0), (1.0, 1), 0, 1)
    except Conflict:
        pass
    else:
        raise AssertionError("a fenced driver sets money aside")
    found = new.run(run)
    assert found is not None
    assert (found.summary.status, new.printed(run), len(new.rows(run))) == ("running", {}, 1)
    assert old.leases.release(run) is None, "what is not ours any more cannot be let go of"
    assert new.append([_part(run, 1)]) == [None]
    assert new.reserve(run, EffectId("one/a"), (0.5, 0), (1.0, 1), 0, 1)


def _a_run_is_driven_by_whoever_makes_it(another: Another) -> None:
    one, two, run = another(), another(), RunId("one")
    assert _join(one).own(run) == 0, "there is none yet"
    one.create(*new_run(run))
    assert not isinstance(_join(two).own(run), int)
    assert one.append([_part(run, 1)]) == [None]
    assert isinstance(two.append([_part(run, 2)])[0], Fenced)
    one.delete(run)
    one.create(*new_run(run))
    assert one.append([_part(run, 1)]) == [None], "whoever has an id has it for the next run, too"
    assert isinstance(two.append([_part(run, 2)])[0], Fenced)


def _a_renamed_run_is_nobodys(another: Another) -> None:
    one, run, kept = another(), RunId("one"), RunId("one~1")
    one.create(*new_run(run))
    assert _join(one).own(run) == 1
    one.rename(run, kept)
    assert one.append([Append(run=kept, expected_seq=0, at_us=1, summary=Summary(status="failed"))]) == [None]
    one.create(*new_run(run))
    assert one.append([_part(run, 1)]) == [None]
    assert one.leases.release(run) == "resting"


def _only_a_lease_that_is_over_is_taken_over(another: Another) -> None:
    one, two, run = another(), another(), RunId("one")
    one.create(*new_run(run))
    assert _join(one).own(run) == 1
    answer = _join(two, OVER_S).own(run, dead=one.leases.worker)
    assert not isinstance(answer, int), "whoever has no lease takes up nothing"
    assert answer.worker is None
    two.leases.beat(LONG_S)
    assert two.leases.own(run, dead=one.leases.worker) == 2, "a process that is known to be dead holds nothing"
    assert one.leases.mine() == {}
    assert two.leases.mine() == {run: 2}


def _whoever_judges_has_held_its_own_lease(another: Another) -> None:
    one, two, run = another(), another(), RunId("one")
    one.create(*new_run(run))
    assert _join(one, pool="p").queue(run, "p")
    assert [claimed.run for claimed in one.leases.claim("p", 1)] == [run]
    one.leases.beat(OVER_S)
    _join(two, pool="p")
    assert two.leases.take_over("p", 9, LONG_S) == [], "after an outage everybody's lease is over: it waits and sees"
    assert [(taken.run, taken.epoch) for taken in two.leases.take_over("p", 9, 0.0)] == [(run, 2)]
    assert isinstance(one.append([_part(run, 1)])[0], Fenced)


def _a_queued_run_is_claimed_once(another: Another) -> None:
    first, runs = another(), [_numbered(number) for number in range(20)]
    _join(first, pool="p")
    for number, run in enumerate(runs):
        first.create(*new_run(run))
        assert first.leases.queue(run, "p", priority=number % 2)
    assert first.leases.claim("other", 9) == []
    assert {claimed.run for claimed in first.leases.claim("p", 10)} == set(runs[1::2]), "higher priorities come first"
    claimed: list[str] = []

    def claim() -> None:
        store = another()
        _join(store, pool="p")
        while found := store.leases.claim("p", 1):
            claimed.extend(one.run for one in found)

    _together([claim] * 4)
    assert sorted(claimed) == sorted(runs[::2]), "each run is claimed once"


def _a_directive_and_a_release_never_overlook_each_other(another: Another) -> None:
    """Either the driver takes it, or the queue has the run again: else nobody would ever look."""
    driver, person = another(), another()
    _join(driver, pool="p")
    for number in range(RACES):
        run = _numbered(number)
        driver.create(*new_run(run))
        assert driver.leases.queue(run, "p")
        assert [one.run for one in driver.leases.claim("p", 1)] == [run]
        _together([partial(person.post, run, f"d-{run}", b"x", 1), partial(driver.leases.release, run)])
        again = [one.run for one in driver.leases.claim("p", 1)]
        assert again == [run], "a directive waits in a run that nobody looks at"
        driver.leases.release(run)
        driver.delete(run)


def _together(works: Sequence[Callable[[], object]]) -> None:
    ready = threading.Barrier(len(works))
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(lambda work: (ready.wait(), work()), work) for work in works]:
            done.result()


def _one_process_delivers_to_a_reader(another: Another) -> None:
    stores, holders = [another() for _ in range(4)], [uuid.uuid4() for _ in range(4)]
    with ThreadPoolExecutor(len(stores)) as pool:
        said = list(pool.map(lambda store, holder: store.outbox.carry("a", holder, LONG_S), stores, holders))
    assert sum(said) == 1, "two processes tell one subscriber"
    first = said.index(True)
    one, two = stores[first].outbox, stores[first - 1].outbox
    assert one.carry("a", holders[first], LONG_S), "whoever has it says so again"
    assert two.carry("b", holders[first - 1], LONG_S), "each reader has its own"
    assert one.carry("a", holders[first], OVER_S)
    assert two.carry("a", holders[first - 1], LONG_S), "what has run out is anybody's"
    assert not one.carry("a", holders[first], LONG_S)


def _an_account_has_no_more_agents_at_work_than_it_may(another: Another) -> None:
    stores, runs = [another() for _ in range(6)], [_numbered(number) for number in range(6)]
    for store, run in zip(stores, runs, strict=True):
        store.create(*new_run(run))
        assert _join(store).own(run) == 1
    cluster = Cluster(stores[0].url)
    try:
        cluster.limit_account("shared", 2)
        with ThreadPoolExecutor(len(stores)) as pool:
            said = list(pool.map(lambda store, run: store.accounts.start(run, _effect(run), "shared"), stores, runs))
        assert sum(said) == 2, "more agents of an account work than may"
        working, waiting = said.index(True), said.index(False)
        assert stores[working].accounts.start(runs[working], _effect(runs[working]), "shared"), "it works already"
        assert stores[waiting].accounts.start(runs[waiting], _effect(runs[waiting]), "other"), "another account has no limit"
        stores[waiting].accounts.end(runs[waiting], _effect(runs[waiting]))
        stores[working].leases.beat(OVER_S)
        assert stores[waiting].accounts.start(runs[waiting], _effect(runs[waiting]), "shared"), "a dead host takes no room"
        stores[working].leases.beat(LONG_S)
        assert [(one.name, one.limit, one.working) for one in cluster.list_accounts()] == [("shared", 2, 3)]
        stores[waiting].accounts.end(runs[waiting], _effect(runs[waiting]))
        assert not stores[waiting].accounts.start(runs[waiting], _effect(runs[waiting]), "shared")
        assert stores[waiting].accounts.start(runs[waiting], _effect(runs[waiting]), "shared", adopted=True), "it works already"
        _an_append_counts_agents_no_more(stores[working], runs[working], cluster)
        _an_append_counts_agents_that_start(stores[working], runs[working], cluster)
    finally:
        cluster.close()


def _an_append_counts_agents_no_more(store: PostgresStore, run: RunId, cluster: Cluster) -> None:
    over = msgspec.structs.replace(_part(run, 0), over=(_effect(run),))
    assert isinstance(store.append([over])[0], Conflict)
    assert [one.working for one in cluster.list_accounts()] == [3], "nothing of what is refused counts"
    assert store.append([msgspec.structs.replace(over, expected_seq=1)]) == [None]
    assert [one.working for one in cluster.list_accounts()] == [2], "an agent works on whose end is written"


def _an_append_counts_agents_that_start(store: PostgresStore, run: RunId, cluster: Cluster) -> None:
    """Without a limit it counts them; with one it does not, and they are asked for one by one."""
    one, two = effect_id(run, UnitId("v"), 0, 1, 1, "agent"), effect_id(run, UnitId("w"), 0, 1, 1, "agent")
    both = msgspec.structs.replace(_part(run, 2), starting=(StartingAgent(one, "free"), StartingAgent(two, "shared")))
    assert isinstance(store.append([msgspec.structs.replace(both, expected_seq=7)])[0], Conflict)
    assert store.append([both]) == [None]
    assert _working(cluster) == {"free": 1, "shared": 2}, "one of a limited account counts only when it may start"
    assert not store.accounts.start(run, two, "shared"), "the account is full"
    assert store.accounts.start(run, one, "free")
    cluster.limit_account("free", 1)
    assert not store.accounts.start(run, two, "free"), "the one that was there before the limit takes room"
    store.accounts.end(run, one)
    assert store.accounts.start(run, two, "free")
    freely = msgspec.structs.replace(_part(run, 3), starting=(StartingAgent(one, "other"),))
    assert store.append([freely]) == [None]
    store.accounts.end(run, one)
    cluster.limit_account("other", 1)
    assert _working(cluster) == {"free": 1, "other": 0, "shared": 2}, "one that does not start takes room"


def _working(cluster: Cluster) -> dict[str, int]:
    return {account.name: account.working for account in cluster.list_accounts()}


def _effect(run: RunId) -> EffectId:
    return effect_id(run, UnitId("u"), 0, 1, 1, "agent")
