"""The journals of all runs are read on without a gap, though their keys are committed out of order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.runs.tail import Tail
from agent_orchestrator.store.port import Append, TailRow
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.testing.store import new_run
from tests.postgres.server import shared_server

ONE, TWO = RunId("one"), RunId("two")
WRITERS, ROWS = 6, 40
LATE = """
SELECT orc.append(
    gen_random_uuid(), 1, NULL, ARRAY['one'], ARRAY[0::bigint], ARRAY[1::bigint], ARRAY[9::bigint], ARRAY['[2]'::bytea],
    ARRAY[NULL::bytea], ARRAY[NULL::boolean], ARRAY[NULL::json], ARRAY[]::bigint[], ARRAY[]::text[], ARRAY[]::text[]
)
"""


@pytest.fixture
def address() -> str:
    address = shared_server().make_database()
    install(address)
    return address


@pytest.fixture
def store(address: str) -> Iterator[PostgresStore]:
    store = PostgresStore(address, "demo")
    yield store
    store.close()


def test_a_row_that_is_committed_late_is_not_skipped(address: str, store: PostgresStore) -> None:
    store.create(*new_run(ONE))
    store.create(*new_run(TWO))
    tail, mark = Tail(store), store.mark()
    with psycopg.connect(address) as late:
        late.execute(LATE)
        assert store.append([Append(run=TWO, expected_seq=1, at_us=1, body=b"[2]")]) == [None]
        assert tail.read() == [], "a row was shown before one whose key is lower"
        assert store.newest()[1] == tail.place.key, "whoever begins now begins before both"
        late.commit()
    assert store.mark() != mark
    assert [row.run for row in tail.read()] == [ONE, TWO]


def test_a_row_that_is_never_committed_holds_up_nobody(address: str, store: PostgresStore) -> None:
    store.create(*new_run(ONE))
    store.create(*new_run(TWO))
    tail = Tail(store)
    with psycopg.connect(address) as late:
        late.execute(LATE)
        assert store.append([Append(run=TWO, expected_seq=1, at_us=1, body=b"[2]")]) == [None]
        late.rollback()
    assert [row.run for row in tail.read()] == [TWO]


def test_whoever_reads_on_beside_many_writers_sees_every_row_once_and_in_order(address: str, store: PostgresStore) -> None:
    runs = [RunId(f"run-{number}") for number in range(WRITERS)]
    for run in runs:
        store.create(*new_run(run))
    tail = Tail(store)

    def write(run: RunId) -> None:
        own = PostgresStore(address, "demo")
        for seq in range(1, ROWS + 1):
            assert own.append([Append(run=run, expected_seq=seq, at_us=1, body=b"[]")]) == [None]
        own.close()

    writers = [threading.Thread(target=write, args=(run,)) for run in runs]
    for writer in writers:
        writer.start()
    seen: list[TailRow] = []
    writing, found = True, [*seen]
    while writing or found:
        writing = any(writer.is_alive() for writer in writers)
        found = tail.read()
        seen += found
    assert [row.key for row in seen] == sorted({row.key for row in seen})
    for run in runs:
        assert [row.seq for row in seen if row.run == run] == list(range(2, ROWS + 2))


def test_runs_of_another_repository_are_another_store(address: str, store: PostgresStore) -> None:
    other = PostgresStore(address, "other")
    assert store.newest()[0] != other.newest()[0]
    store.create(*new_run(ONE))
    other.create(*new_run(ONE))
    assert store.append([Append(run=ONE, expected_seq=1, at_us=1, body=b"[2]")]) == [None]
    assert store.post(ONE, "d1", b"x", 1)
    assert other.post(ONE, "d1", b"y", 1)
    assert (len(store.rows(ONE)), len(other.rows(ONE))) == (2, 1)
    assert ([row.seq for row in store.since(0, 9)], [row.seq for row in other.since(0, 9)]) == ([1, 2], [1])
    assert (store.count(), other.count()) == ((1, 1), (1, 1))
    store.delete(ONE)
    assert other.inbox(ONE) == [("d1", b"y")]
    other.close()
