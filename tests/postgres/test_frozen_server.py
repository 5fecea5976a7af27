"""A server that takes a request and says nothing: whoever asked goes on, and what was asked for is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.store.port import Append
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.testing.store import new_run
from tests.acceptance.rig import wait_until
from tests.postgres.server import frozen, make_impatient_database, shared_server

ONE = RunId("one")
GIVES_WAY = """
CREATE SEQUENCE tries;
CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('tries') = 1 THEN
        RAISE EXCEPTION USING ERRCODE = '40P01';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER give_way BEFORE INSERT ON orc.events FOR EACH ROW EXECUTE FUNCTION give_way();
"""
"""The first append is the one that a deadlock is resolved by."""


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    address = make_impatient_database()
    install(address)
    store = PostgresStore(address, "demo")
    store.create(*new_run(ONE))
    assert store.append([Append(run=ONE, expected_seq=1, at_us=1, body=b"[2]")]) == [None]
    yield store
    store.close()


def test_a_write_that_nobody_answers_is_asked_for_by_another_connection_and_counts_once(store: PostgresStore) -> None:
    server = shared_server()
    serving = server.list_serving(store.url)
    with frozen(serving):
        assert store.append([Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")]) == [None]
        assert store.post(ONE, "d1", b"x", 1)
        assert len(store.rows(ONE)) == 3
    # What lay before the frozen ones is done now, and found to be done already.
    wait_until(lambda: not set(serving) & set(server.list_serving(store.url)))
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]
    assert store.inbox(ONE) == [("d1", b"x")]
    assert store.health()[1] == []


def test_an_event_loop_hears_of_it_soon_and_goes_on(store: PostgresStore) -> None:
    async def look() -> None:
        with pytest.raises(StoreAway, match=r"has not answered for"):
            store.rows(ONE)
        assert len(store.rows(ONE)) == 2, "by another connection"

    with frozen(shared_server().list_serving(store.url)):
        asyncio.run(look())


def test_an_event_loop_that_appends_does_not_wait_and_a_thread_finds_out_what_became_of_it(store: PostgresStore) -> None:
    part = Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")

    async def append() -> None:
        with pytest.raises(StoreAway, match="does not answer at once"):
            store.append_at_once(part)
        with pytest.raises(StoreAway, match="the connection is lost"):
            store.append_at_once(Append(run=ONE, expected_seq=2, at_us=2, body=b"[?]"))
        assert await asyncio.to_thread(store.append, [part]) == [None], "by another connection"

    server = shared_server()
    serving = server.list_serving(store.url)
    with frozen(serving):
        asyncio.run(append())
    # The frozen one does now what lay before it, and goes.
    wait_until(lambda: set(serving) - set(server.list_serving(store.url)))
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]


def test_an_append_of_an_event_loop_that_gave_way_in_a_deadlock_is_made_again_in_a_thread(store: PostgresStore) -> None:
    part = Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute(GIVES_WAY)

    async def append() -> None:
        with pytest.raises(StoreAway):
            store.append_at_once(part)
        assert await asyncio.to_thread(store.append, [part]) == [None]

    asyncio.run(append())
    assert len(store.rows(ONE)) == 3


def test_a_statement_that_waits_for_ever_is_ended_by_the_server_and_nothing_is_written(store: PostgresStore) -> None:
    with psycopg.connect(store.url) as holder:
        holder.execute("SELECT FROM orc.runs WHERE id = 'one' FOR UPDATE")
        with pytest.raises(StoreAway, match="statement timeout"):
            store.append([Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")])
    assert len(store.rows(ONE)) == 2
