"""`check_store`: the promises every store keeps, whatever it is made of.

Give it a function that makes an empty store; it raises AssertionError with the promise that was broken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import msgspec

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import Conflict, RunExists
from agent_orchestrator.store.port import Append, Cursor, Day, Delivery, NewRun, RateWindow, Spending, Store, UsageRow, Which

PROCESSES, SHARES = 4, 6
ONE, TWO, THREE = map(RunId, ("one", "two", "three"))
DELIVERIES = (("a", 20, "x"), ("a", 9, "y"), ("a", 9, "x"), ("b", 1, "x"))


def check_store(make: Callable[[], Store], join: Callable[[Store], Store] | None = None) -> None:
    """Run every check on a fresh store each; `join` opens one once more, as another process would."""
    for check in (
        _a_run_is_there_with_its_first_events,
        _lists_have_what_is_asked_for,
        _a_used_id_is_refused,
        _appends_are_ordered_and_fenced,
        _a_conflict_answers_its_own_run_only,
        _directives_count_once_and_are_taken_with_the_append,
        _usage_counts_once,
        _what_was_spent_outlives_its_run,
        _spending_is_summed_by_agent_and_model,
        _a_rate_limit_is_kept_by_account_and_window,
        _a_day_is_shared_by_all_runs,
        _identities_are_kept_newest_last,
        _a_renamed_run_keeps_everything,
        _a_kept_journal_is_created_under_its_own_id,
        _a_deleted_run_leaves_nothing,
        _a_snapshot_goes_with_its_run,
        _rows_of_all_runs_are_read_on_in_order,
        _a_key_never_returns,
        _a_mark_changes_with_every_write,
        _a_readers_place_moves_with_its_deliveries,
        _deliveries_wait_in_order_until_dropped,
    ):
        with closing(make()) as store:
            check(store)
    if join is not None:
        with closing(make()) as store:
            _two_cannot_both_have_what_is_left_of_a_day(store, partial(join, store))


def new_run(run: RunId, created_us: int = 1) -> tuple[NewRun, Append]:
    """Return a run for tests, with its first append."""
    summary = Summary(status="running", total=1)
    context = Context(run=run, home="/repo", workdir="/repo", created_us=created_us)
    new = NewRun(system="sample", name="demo", context=context, spec=b"{}", summary=summary)
    return new, Append(run=run, expected_seq=0, at_us=created_us, body=b"[1]", summary=summary)


def _append(store: Store, run: RunId, seq: int, body: bytes | None = b"[]", **more: object) -> Conflict | None:
    part = msgspec.structs.replace(Append(run=run, expected_seq=seq, at_us=seq, body=body), **more)
    return store.append([part])[0]


def _a_run_is_there_with_its_first_events(store: Store) -> None:
    store.create(*new_run(ONE, 5))
    store.create(*new_run(TWO, 6))
    found = store.run(ONE)
    assert found is not None
    assert found.context.created_us == 5
    assert found.summary.total == 1
    assert store.rows(ONE) == [(1, 5, b"[1]")]
    assert store.spec(ONE) == b"{}"
    assert store.run(THREE) is None
    assert [run.id for run in store.runs()] == [TWO, ONE], "runs are listed newest first"


def _lists_have_what_is_asked_for(store: Store) -> None:
    store.create(*new_run(ONE, 5))
    store.create(*new_run(TWO, 6))
    new, first = new_run(THREE, 6)
    store.create(msgspec.structs.replace(new, system="other", name="third"), first)
    assert _append(store, TWO, 1, None, summary=Summary(status="completed")) is None

    def ids(**which: Any) -> list[str]:
        return [run.id for run in store.runs(Which(**which))]

    assert ids() == [THREE, TWO, ONE], "of two runs of one moment the later one is listed first"
    assert ids(most=2) == [THREE, TWO]
    assert (ids(ended=True), ids(ended=False)) == ([TWO], [THREE, ONE]), "a summary says whether a run has ended"
    assert (ids(system="sample"), ids(system="sample", ended=False)) == ([TWO, ONE], [ONE])
    assert (ids(name="third"), ids(name="none")) == ([THREE], [])
    assert (ids(begins="t"), ids(begins="t", most=1), ids(begins="tw")) == ([THREE, TWO], [THREE], [TWO])
    assert store.count() == (3, 2)
    assert _append(store, TWO, 1, None, summary=Summary(status="running")) is None
    assert (store.count(), ids(ended=True)) == ((3, 3), []), "a run that goes on has not ended"


def _a_used_id_is_refused(store: Store) -> None:
    store.create(*new_run(ONE))
    try:
        store.create(*new_run(ONE))
    except RunExists:
        assert len(store.rows(ONE)) == 1, "a refused run must leave no trace"
    else:
        raise AssertionError("an id can be used twice")


def _appends_are_ordered_and_fenced(store: Store) -> None:
    store.create(*new_run(ONE))
    assert _append(store, ONE, 1, b"[2]") is None
    assert isinstance(_append(store, ONE, 1, b"[3]"), Conflict), "a stale writer must be told"
    assert isinstance(_append(store, RunId("none"), 0), Conflict), "an unknown run must be told"
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]"]
    assert store.rows(ONE, after=1) == [(2, 1, b"[2]")]
    assert _append(store, ONE, 2, None, summary=Summary(status="paused")) is None
    found = store.run(ONE)
    assert found is not None
    assert found.summary.status == "paused"
    assert len(store.rows(ONE)) == 2, "an append without events takes no sequence number"


def _a_conflict_answers_its_own_run_only(store: Store) -> None:
    for run in (ONE, TWO, THREE):
        store.create(*new_run(run))
    parts = [Append(run=run, expected_seq=seq, at_us=9, body=b"[9]") for run, seq in ((ONE, 1), (TWO, 7), (THREE, 1))]
    answers = store.append(parts)
    assert [answer is None for answer in answers] == [True, False, True]
    assert [len(store.rows(run)) for run in (ONE, TWO, THREE)] == [2, 1, 2]


def _directives_count_once_and_are_taken_with_the_append(store: Store) -> None:
    store.create(*new_run(ONE))
    assert store.post(ONE, "d1", b"a", 1)
    assert store.post(ONE, "d2", b"b", 2)
    assert not store.post(ONE, "d1", b"again", 3), "a repeated id must not count"
    assert store.inbox(ONE) == [("d1", b"a"), ("d2", b"b")]
    assert isinstance(_append(store, ONE, 7, taken=("d1",)), Conflict)
    assert len(store.inbox(ONE)) == 2, "a refused append takes nothing"
    assert _append(store, ONE, 1, taken=("d1",)) is None
    assert store.inbox(ONE) == [("d2", b"b")]
    assert not store.post(ONE, "d1", b"late", 4), "a taken directive stays known"


def _usage_counts_once(store: Store) -> None:
    store.create(*new_run(ONE))
    row = UsageRow(effect=EffectId("one/a/i0.a1.l1.agent"), unit="a", agent="x", usage=Usage(input_tokens=3, cost_usd=0.5))
    assert _append(store, ONE, 1, usage=(row,)) is None
    assert _append(store, ONE, 2, usage=(row,)) is None
    assert [line.usage for line in store.usage(ONE)] == [row.usage]
    assert [line.run for line in store.usage()] == [ONE]
    assert store.usage(TWO) == []


def _what_was_spent_outlives_its_run(store: Store) -> None:
    row = UsageRow(effect=EffectId("one/a/i0.a1.l1.agent"), unit="a", agent="x", usage=Usage(input_tokens=3, cost_usd=0.5))
    store.create(*new_run(ONE))
    assert _append(store, ONE, 1, usage=(row,)) is None
    store.create(*new_run(TWO))
    assert (store.costs(), store.costs(ONE), store.costs(TWO), store.costs(THREE)) == ({ONE: 0.5}, {ONE: 0.5}, {}, {})
    store.delete(TWO)
    store.delete(ONE)
    assert store.usage(ONE) == []
    assert [(line.run, line.pruned, line.usage) for line in store.usage()] == [(ONE, True, row.usage)]
    store.create(*new_run(ONE))
    assert store.usage(ONE) == [], "a new run has spent nothing"
    assert _append(store, ONE, 1, usage=(row,)) is None
    assert [line.pruned for line in store.usage(ONE)] == [False], "and its launches count, whatever their ids"
    store.rename(ONE, RunId("one~1"))
    store.create(*new_run(ONE))
    assert _append(store, ONE, 1, usage=(row,)) is None
    assert sorted((line.run, line.pruned) for line in store.usage()) == [(ONE, False), (ONE, True), ("one~1", False)]
    assert store.day(1) == Day(cost_usd=1.5, tokens=9), "the day forgets none of them"


def _spending_is_summed_by_agent_and_model(store: Store) -> None:
    store.create(*new_run(ONE))
    used = (
        ("x", Usage(model="m", input_tokens=3, cost_usd=0.5)),
        ("x", Usage(model="m", output_tokens=4, cache_read_tokens=5)),
        ("x", Usage(cost_usd=0.25)),
        ("y", Usage(model="m")),
    )
    for seq, (agent, usage) in enumerate(used, 1):
        row = UsageRow(effect=EffectId(f"one/a/i0.a{seq}.l1.agent"), unit="a", agent=agent, usage=usage)
        assert _append(store, ONE, seq, usage=(row,)) is None
    whole = [
        Spending(agent="x", model="", launches=1, cost_usd=0.25, tokens=0, unknown=0),
        Spending(agent="x", model="m", launches=2, cost_usd=0.5, tokens=12, unknown=1),
        Spending(agent="y", model="m", launches=1, cost_usd=None, tokens=0, unknown=1),
    ]
    assert store.spending(1) == whole
    assert [one.agent for one in store.spending(4)] == ["y"], "what came before does not count"
    store.delete(ONE)
    assert store.spending(1) == whole, "what was spent outlives its run"


def _a_rate_limit_is_kept_by_account_and_window(store: Store) -> None:
    store.create(*new_run(ONE))
    first = RateWindow(account="claude", name="5-hour", resets_us=900, seen_us=5)
    weekly = RateWindow(account="claude", name="weekly", resets_us=9000, seen_us=6)
    assert _append(store, ONE, 1, windows=(first, weekly)) is None
    later = RateWindow(account="claude", name="5-hour", resets_us=1800, seen_us=7, strikes=2)
    assert _append(store, ONE, 2, None, windows=(later,)) is None
    assert _append(store, ONE, 2, None, windows=(first,)) is None
    assert store.windows() == [later, weekly], "what was seen last is in force, by window"
    store.delete(ONE)
    assert len(store.windows()) == 2, "a limit is the account's, not the run's"


def _a_day_is_shared_by_all_runs(store: Store) -> None:
    for run in (ONE, TWO):
        store.create(*new_run(run))
    used = Usage(input_tokens=30, output_tokens=10, cost_usd=0.5)
    row = UsageRow(effect=EffectId("one/a/i0.a1.l1.agent"), unit="a", agent="x", usage=used)
    assert _append(store, ONE, 1, usage=(row,)) is None
    limit = (1.0, 100)
    assert store.reserve(ONE, EffectId("one/b"), (0.3, 20), limit, 1, 5)
    assert not store.reserve(TWO, EffectId("two/a"), (0.3, 20), limit, 1, 5), "two runs cannot both have what is left"
    assert not store.reserve(TWO, EffectId("two/a"), (0.1, 50), limit, 1, 5), "of tokens neither"
    assert store.reserve(ONE, EffectId("one/b"), (0.4, 20), limit, 1, 6), "a reservation does not stand in its own way"
    assert not store.reserve(ONE, EffectId("one/b"), (0.6, 20), limit, 1, 6)
    assert store.day(1) == Day(cost_usd=0.5, tokens=40, reserved_usd=0.4, reserved_tokens=20)
    assert store.day(1, but_for=ONE) == Day(cost_usd=0.5, tokens=40), "a run knows what it set aside itself"
    assert store.reserved(ONE) == (0.4, 20)
    assert store.reserved(TWO) == (0.0, 0)
    assert store.day(2) == Day(reserved_usd=0.4, reserved_tokens=20), "what came before does not count"
    assert _append(store, ONE, 2, over=("one/b",)) is None
    assert store.day(1).reserved_usd == 0
    assert store.reserve(TWO, EffectId("two/a"), (0.3, 20), limit, 1, 7)
    assert _append(store, TWO, 1, None, release_all=True) is None
    assert store.reserved(TWO) == (0.0, 0)
    assert store.reserve(TWO, EffectId("two/a"), (0.3, 20), limit, 1, 7)
    store.delete(TWO)
    assert store.day(1).reserved_tokens == 0, "a forgotten run sets nothing aside"


def _two_cannot_both_have_what_is_left_of_a_day(store: Store, join: Callable[[], Store]) -> None:
    store.create(*new_run(ONE))
    ready, had = threading.Barrier(PROCESSES), []

    def ask(number: int) -> None:
        with closing(join()) as own:
            ready.wait()
            effects = [EffectId(f"one/{number}-{share}") for share in range(SHARES)]
            had.extend([own.reserve(ONE, effect, (0.1, 10), (SHARES / 10, 10**9), 0, 1) for effect in effects])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(had) == PROCESSES * SHARES
    assert had.count(True) == SHARES, "all shares were given out, and none twice"
    assert store.day(0).reserved_tokens == SHARES * 10


def _identities_are_kept_newest_last(store: Store) -> None:
    store.create(*new_run(ONE))
    for number in range(40):
        identity = Identity(inode=number, mtime_ns=1, size=1, sha256="x")
        assert _append(store, ONE, 0, None, printed=(Printed(path="a.json", identity=identity),)) is None
    kept = store.printed(ONE)["a.json"]
    assert [identity.inode for identity in kept] == list(range(24, 40)), "the newest identities are kept, and no more"


def _a_renamed_run_keeps_everything(store: Store) -> None:
    store.create(*new_run(ONE))
    store.post(ONE, "d1", b"a", 1)
    store.rename(ONE, RunId("one~1"))
    assert store.run(ONE) is None
    assert len(store.rows(RunId("one~1"))) == 1
    assert store.inbox(RunId("one~1")) == [("d1", b"a")]
    store.create(*new_run(ONE))
    assert store.inbox(ONE) == []


def _a_kept_journal_is_created_under_its_own_id(store: Store) -> None:
    new, first = new_run(ONE)
    kept = RunId("one~1")
    store.create(new, msgspec.structs.replace(first, run=kept, expected_seq=2), [(1, 1, b"[0]"), (2, 1, b"[1]")])
    assert store.run(ONE) is None
    assert (found := store.run(kept)) is not None
    assert found.context.run == ONE, "the context is the one of the run that it was"
    assert [seq for seq, _, _ in store.rows(kept)] == [1, 2, 3]
    store.create(new, first)
    assert len(store.rows(ONE)) == 1


def _a_deleted_run_leaves_nothing(store: Store) -> None:
    store.create(*new_run(ONE))
    store.post(ONE, "d1", b"a", 1)
    store.delete(ONE)
    assert (store.run(ONE), store.runs()) == (None, [])
    store.create(*new_run(ONE))
    assert (len(store.rows(ONE)), store.inbox(ONE)) == (1, [])


def _a_snapshot_goes_with_its_run(store: Store) -> None:
    if (kept := store.snapshots) is None:
        return
    for leave in (store.delete, lambda run: store.rename(run, THREE)):
        store.create(*new_run(ONE))
        for content in (b"old", b"new"):
            kept.write(ONE, content)
        assert kept.read(ONE) == b"new"
        leave(ONE)
        assert kept.read(ONE) is None


def _rows_of_all_runs_are_read_on_in_order(store: Store) -> None:
    assert store.since(0, 10) == [], "an empty store has no rows"
    epoch, newest = store.newest()
    assert epoch, "a store is told from another one by its epoch"
    assert newest == 0
    store.create(*new_run(ONE, 5))
    store.create(*new_run(TWO, 6), copied=[])
    _append(store, ONE, 1, b"[2]")
    found = store.since(0, 10)
    assert [(row.run, row.seq, row.body) for row in found] == [(ONE, 1, b"[1]"), (TWO, 1, b"[1]"), (ONE, 2, b"[2]")]
    assert store.newest() == (epoch, found[-1].key)
    assert store.since(found[0].key, 1) == found[1:2], "so many, from there on"
    assert store.since(found[-1].key, 10) == []


def _a_key_never_returns(store: Store) -> None:
    store.create(*new_run(ONE))
    store.create(*new_run(TWO))
    _append(store, TWO, 1)
    last = store.since(0, 10)[-1].key
    store.delete(TWO)
    gone = store.since(last, 10)
    assert [(row.run, row.body) for row in gone] == [(TWO, None)], "readers are told that a run is gone"
    assert [row.run for row in store.since(0, 10)] == [ONE, TWO], "its rows are gone"
    store.create(*new_run(TWO))
    assert store.since(gone[-1].key, 10)[0].key > gone[-1].key > last, "a key was given to another row"
    last = store.newest()[1]
    store.rename(ONE, RunId("one~1"))
    assert {row.run for row in store.since(last, 10)} == {ONE, "one~1"}, "both ids mean something else now"
    assert store.since(0, 1)[0].run == "one~1", "older rows go by the new id"


def _a_mark_changes_with_every_write(store: Store) -> None:
    seen = [store.mark()]
    assert store.mark() == seen[0], "a look changes nothing"
    store.create(*new_run(ONE))
    seen.append(store.mark())
    _append(store, ONE, 1)
    seen.append(store.mark())
    assert store.posted(ONE, "d1") is None
    store.post(ONE, "d1", b"{}", 2)
    seen.append(store.mark())
    assert store.posted(ONE, "d1") is False, "it waits"
    _append(store, ONE, 2, taken=("d1",))
    assert store.posted(ONE, "d1") is True, "it was taken"
    assert store.posted(TWO, "d1") is None, "it was another run's"
    store.delete(ONE)
    seen.append(store.mark())
    assert len(set(map(repr, seen))) == len(seen)


def _a_readers_place_moves_with_its_deliveries(store: Store) -> None:
    outbox, one = store.outbox, Delivery(reader="a", key=3, body=b"x")
    assert outbox.cursor("a") is None
    assert not outbox.advance("a", 1, Cursor(5), [one]), "a reader without a place is at none"
    assert outbox.advance("a", None, Cursor(3, b"kept"), [one])
    assert not outbox.advance("a", None, Cursor(9), [Delivery(reader="a", key=9, body=b"y")]), "somebody has moved it"
    assert (outbox.cursor("a"), outbox.cursor("b")) == (Cursor(3, b"kept"), None), "each reader has its own"
    assert outbox.deliveries() == [one], "what was refused left something behind"
    assert outbox.advance("a", 3, Cursor(9))
    assert outbox.cursor("a") == Cursor(9)


def _deliveries_wait_in_order_until_dropped(store: Store) -> None:
    outbox = store.outbox
    some = [Delivery(reader=name, key=key, kind=kind, body=b"x") for name, key, kind in DELIVERIES]
    outbox.advance("a", None, Cursor(30), some[:3])
    outbox.put(some[3])
    outbox.put(some[2])
    assert [(one.reader, one.key, one.kind) for one in outbox.deliveries()] == sorted(DELIVERIES), "once each, in order"
    assert [one.key for one in outbox.deliveries("a")] == [9, 9, 20]
    changed = msgspec.structs.replace(some[0], body=b"later", given_up=True)
    outbox.put(changed)
    assert outbox.deliveries(given_up=True) == [changed]
    assert len(outbox.deliveries("a", given_up=False)) == 2
    outbox.drop(changed)
    outbox.drop(changed)
    assert len(outbox.deliveries()) == 3
    store.create(*new_run(ONE))
    store.delete(ONE)
    assert len(outbox.deliveries()) == 3, "what is to be told outlives its run"
