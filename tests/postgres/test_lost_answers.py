"""A write whose answer is lost is known afterwards: it counts once, and whoever asked gets its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.errors import Conflict, RunExists, StoreAway
from agent_orchestrator.store.port import Append, Cursor, Delivery, Row, StartingAgent
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.testing.store import new_run
from tests.acceptance.rig import wait_until
from tests.postgres.proxy import Cut, Proxy, proxied
from tests.postgres.server import make_impatient_database, shared_server

ONE, TWO = RunId("one"), RunId("two")
IDENTITY = Identity(inode=1, mtime_ns=1, size=1, sha256="x")
END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
COPIED: list[Row] = [(1, 1, b"[0]"), (2, 1, b"[1]")]


@pytest.fixture
def rig() -> Iterator[tuple[PostgresStore, Proxy]]:
    server = shared_server()
    address = make_impatient_database()
    install(address)
    with proxied(server.port) as proxy:
        store = PostgresStore(address.replace(f":{server.port}/", f":{proxy.port}/"), "demo")
        store.create(*new_run(ONE))
        assert store.append([Append(run=ONE, expected_seq=1, at_us=1, body=b"[2]")]) == [None]
        yield store, proxy
        store.close()


def create(store: PostgresStore) -> None:
    new, first = new_run(TWO)
    store.create(new, Append(run=TWO, expected_seq=2, at_us=3, body=b"[3]", summary=first.summary), COPIED)
    assert [body for _, _, body in store.rows(TWO)] == [b"[0]", b"[1]", b"[3]"]
    with pytest.raises(RunExists):
        store.create(*new_run(TWO))


def append(store: PostgresStore) -> None:
    printed = (Printed(path="a", identity=IDENTITY),)
    parts = [
        Append(run=TWO, expected_seq=0, at_us=2, body=b"[?]"),
        Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]", summary=Summary(status="paused"), printed=printed),
    ]
    answers = store.append(parts)
    assert [answer is None for answer in answers] == [False, True], "each part has its own answer"
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]
    assert store.printed(ONE) == {"a": [IDENTITY]}


def append_at_once(store: PostgresStore) -> None:
    """As an event loop does: it does not wait for what is lost, and appends the same in a thread."""
    effect = EffectId("one/a")
    part = Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]", starting=(StartingAgent(effect, "someone"),))

    async def main() -> Conflict | None:
        try:
            return store.append_at_once(part)
        except StoreAway:
            return (await asyncio.to_thread(store.append, [part]))[0]

    assert asyncio.run(main()) is None
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]
    assert store.accounts.start(ONE, effect, "someone")


def append_without_a_row(store: PostgresStore) -> None:
    printed = (Printed(path="a", identity=IDENTITY),)
    part = Append(run=ONE, expected_seq=0, at_us=2, summary=Summary(status="paused"), printed=printed)
    assert store.append([part]) == [None]
    assert store.printed(ONE) == {"a": [IDENTITY]}, "once"


def post(store: PostgresStore) -> None:
    assert store.post(ONE, "d1", b"x", 1), "its id was not there before"
    assert not store.post(ONE, "d1", b"x", 1)
    assert store.inbox(ONE) == [("d1", b"x")]


def reserve(store: PostgresStore) -> None:
    assert store.reserve(ONE, EffectId("one/a"), (1.0, 10), (1.0, 10), 0, 5)
    assert store.reserved(ONE) == (1.0, 10)


def advance(store: PostgresStore) -> None:
    one = Delivery(reader="a", key=3, body=b"x")
    assert store.outbox.advance("a", None, Cursor(3), [one]), "nobody else has moved it"
    assert store.outbox.cursor("a") == Cursor(3)
    assert store.outbox.deliveries() == [one]


def put(store: PostgresStore) -> None:
    store.outbox.put(Delivery(reader="a", key=3, body=b"x"))
    assert len(store.outbox.deliveries()) == 1


def rename(store: PostgresStore) -> None:
    store.rename(ONE, TWO)
    assert [run.id for run in store.runs()] == [TWO]


def delete(store: PostgresStore) -> None:
    store.delete(ONE)
    assert store.runs() == []


WRITES = (create, append, append_at_once, append_without_a_row, post, reserve, advance, put, rename, delete)


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.name.lower())
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_write_counts_once_whatever_is_lost(
    rig: tuple[PostgresStore, Proxy], write: Callable[[PostgresStore], None], how: Cut
) -> None:
    store, proxy = rig
    proxy.cut_next(how)
    write(store)
    assert proxy.cuts == 1
    assert store.health()[1] == []


def test_a_refusal_says_nothing_about_a_write_whose_answer_was_lost(rig: tuple[PostgresStore, Proxy]) -> None:
    """As when a server fails over: at first it cannot be written, and it may have what was sent before."""
    store, proxy = rig
    name = store.address.parameters["dbname"]
    switch = f"ALTER DATABASE {name} SET default_transaction_read_only"
    answers: list[object] = []
    part = Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")
    proxy.cut_next(Cut.ANSWER)
    shared_server().execute(f"{switch} = on")
    writer = threading.Thread(target=lambda: answers.extend(store.append([part])))
    writer.start()
    wait_until(lambda: proxy.cuts)
    shared_server().execute(f"{switch} = off")
    with psycopg.connect(shared_server().url(name), autocommit=True) as other:
        while writer.is_alive():  # New connections can write; those of before cannot, until they are ended.
            other.execute(END_OTHERS)
            writer.join(1)
    assert answers == [None]
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]


def test_a_write_that_still_waits_on_the_server_is_not_done_again_beside_it(rig: tuple[PostgresStore, Proxy]) -> None:
    store, proxy = rig
    server = shared_server()
    database = store.address.parameters["dbname"]
    with psycopg.connect(server.url(database)) as holder:
        holder.execute("SELECT FROM orc.runs WHERE id = 'one' FOR UPDATE")
        proxy.cut_next(Cut.CLIENT)
        answers: list[object] = []
        part = Append(run=ONE, expected_seq=2, at_us=2, body=b"[3]")
        writer = threading.Thread(target=lambda: answers.extend(store.append([part])))
        writer.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        with psycopg.connect(server.url(database), autocommit=True) as looker:
            while looker.execute(waiting).fetchone() != (2,):
                assert writer.is_alive()
        holder.rollback()
    writer.join(60)
    assert answers == [None]
    assert [body for _, _, body in store.rows(ONE)] == [b"[1]", b"[2]", b"[3]"]
