"""The tail of all journals: read on from a place, by readers that come back."""

from __future__ import annotations

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.runs.tail import Pulse, Tail, TailPlace
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Append
from agent_orchestrator.testing.store import new_run

ONE, TWO = RunId("one"), RunId("two")


def _append(store: MemoryStore, run: RunId, seq: int) -> None:
    assert store.append([Append(run=run, expected_seq=seq, at_us=seq, body=b"[]")]) == [None]


def test_a_tail_begins_at_the_newest_row_and_tells_each_row_once() -> None:
    store = MemoryStore()
    store.create(*new_run(ONE))
    tail = Tail(store)
    assert tail.read() == []
    _append(store, ONE, 1)
    store.create(*new_run(TWO))
    assert [(row.run, row.seq) for row in tail.read()] == [(ONE, 2), (TWO, 1)]
    assert tail.read() == []


def test_a_reader_that_comes_back_is_told_what_it_missed_a_part_at_a_time() -> None:
    store = MemoryStore()
    store.create(*new_run(ONE))
    place = Tail(store).place
    for seq in range(1, 6):
        _append(store, ONE, seq)
    tail = Tail(store, TailPlace.read(str(place)))
    assert not tail.lost
    assert [[row.seq for row in tail.read(2)] for _ in range(4)] == [[2, 3], [4, 5], [6], []]


def test_a_place_of_another_store_or_of_the_future_is_none() -> None:
    store = MemoryStore()
    store.create(*new_run(ONE))
    assert Tail(store, TailPlace("other", 1)).lost
    assert Tail(store, TailPlace(store.newest()[0], 99)).lost
    for text in ("", "memory", "memory.", "memory.x", "../1.2", f"memory.{'9' * 40}"):
        assert TailPlace.read(text) is None


def test_a_store_at_rest_is_not_asked_again() -> None:
    store = MemoryStore()
    store.create(*new_run(ONE))
    pulse = Pulse(store)
    assert [pulse.has_moved(), pulse.has_moved()] == [True, False]
    store.post(ONE, "directive", b"{}", 1)
    assert [pulse.has_moved(), pulse.has_moved()] == [True, False]
