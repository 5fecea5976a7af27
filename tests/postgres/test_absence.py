"""A server that goes and comes back: nothing is lost, nothing waits while it is away, and what was said meanwhile is heard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.store.port import Append
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.store.postgres.store import LOOKS_BETWEEN
from agent_orchestrator.testing.store import new_run
from tests.postgres.server import PostgresServer, shared_server

ONE = RunId("one")
PAUSE_S = 0.5


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()


def part(seq: int) -> Append:
    return Append(run=ONE, expected_seq=seq, at_us=seq, body=b"[]")


def hears(store: PostgresStore) -> bool:
    """Look until something is heard, less often than it takes for a look by itself."""
    for _ in range(LOOKS_BETWEEN - 5):
        if store.moved():
            return True
        signal.sigtimedwait((), PAUSE_S)
    return False


def test_a_directive_is_heard_at_once_by_whoever_looks() -> None:
    address = shared_server().make_database()
    install(address)
    store, other = PostgresStore(address, "demo"), PostgresStore(address, "demo")
    store.create(*new_run(ONE))
    assert store.moved(), "the first look always says so"
    assert not store.moved()
    other.post(ONE, "d1", b"x", 1)
    assert hears(store)
    assert not store.moved()
    assert [store.moved() for _ in range(LOOKS_BETWEEN)].count(True) == 1, "without any notice it looks now and then"
    for one in (store, other):
        one.close()


def test_a_server_that_crashed_is_connected_to_again(server: PostgresServer) -> None:
    address = server.make_database()
    install(address)
    store = PostgresStore(address, "demo")
    store.create(*new_run(ONE))
    assert store.moved()
    server.stop(signal.SIGQUIT)
    for use in (store.runs, store.moved, store.mark, lambda: store.append([part(1)]), lambda: store.post(ONE, "d1", b"x", 1)):
        with pytest.raises(StoreAway, match="is away"):
            use()
    server.start()
    while True:
        try:
            assert store.append([part(1)]) == [None]
            break
        except StoreAway:
            signal.sigtimedwait((), PAUSE_S)
    assert store.moved(), "something may have been said meanwhile"
    assert store.post(ONE, "d1", b"x", 1)
    assert hears(store), "it listens again"
    assert len(store.rows(ONE)) == 2
    store.close()


def test_whoever_waits_for_a_lost_answer_is_let_go_when_the_store_is_closed(server: PostgresServer) -> None:
    address = server.make_database()
    install(address)
    store = PostgresStore(address, "demo")
    store.create(*new_run(ONE))
    assert store.append([part(1)]) == [None]
    database = address.rsplit("/", 1)[1]
    server.execute(
        "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'", database
    )
    server.execute("CREATE TRIGGER hang BEFORE INSERT ON orc.events FOR EACH ROW EXECUTE FUNCTION hang()", database)
    failed: list[BaseException] = []

    def append() -> None:
        try:
            store.append([part(2)])
        except StoreAway as error:
            failed.append(error)

    writer = threading.Thread(target=append)
    writer.start()
    while server.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != "1":
        assert writer.is_alive()
    server.stop(signal.SIGQUIT)
    writer.join(3 * PAUSE_S)
    assert writer.is_alive(), "nobody knows yet whether it was written"
    store.close()
    writer.join(60)
    assert "may or may not be there" in str(failed[0])
