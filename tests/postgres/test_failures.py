"""A server that cannot be used is one sentence, which says what to do and never a password."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable

import psycopg
import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import (
    DiskFull,
    OrcError,
    StoreAway,
    StoreNewer,
    StoreRefused,
    StoreUnprepared,
    StoreUnwritable,
    Unavailable,
    UsageError,
)
from agent_orchestrator.store.port import Append
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.store.postgres.schema import SQL
from agent_orchestrator.store.queries import migrations
from agent_orchestrator.testing.store import new_run
from tests.postgres.server import GUARDED_USER, find_free_port, shared_server

SECRET = "hunter2-hunter2"
ONE = RunId("one")
KNOWN = len(migrations(SQL))


def prepared() -> str:
    address = shared_server().make_database()
    install(address)
    return address


def changed(*statements: str) -> str:
    address = prepared()
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    return address


def with_password(address: str) -> str:
    user = address.split("//")[1].split("@")[0]
    return address.replace(f"//{user}@", f"//{GUARDED_USER}:{SECRET}@")


CASES: dict[str, tuple[Callable[[], str], type[OrcError], str]] = {
    "nobody listens": (
        lambda: f"postgresql://orc:{SECRET}@127.0.0.1:{find_free_port()}/orc",
        StoreAway,
        r"The store at 127.0.0.1:\d+/orc is away \(.*[Cc]onnection refused.*check that its server runs",
    ),
    "no such host": (lambda: f"postgresql://orc:{SECRET}@nowhere.invalid/orc", StoreAway, r"nowhere.invalid/orc is away"),
    "wrong password": (lambda: with_password(prepared()), StoreRefused, r"password authentication failed.*PGPASSWORD"),
    "no password": (
        lambda: with_password(prepared()).replace(f":{SECRET}@", "@"),
        StoreRefused,
        r"no password supplied.*PGPASSWORD",
    ),
    "no such database": (lambda: shared_server().url("nothing"), StoreRefused, r'database "nothing" does not exist.*createdb'),
    "no schema": (lambda: shared_server().make_database(), StoreUnprepared, r"holds no store yet; run `orc store init`"),
    "older schema": (
        lambda: changed("UPDATE orc.store SET version = 0"),
        StoreUnprepared,
        rf"has schema version 0, and this program needs {KNOWN}; run `orc store migrate`",
    ),
    "newer schema": (
        lambda: changed("UPDATE orc.store SET version = 99"),
        StoreNewer,
        rf"has schema version 99, this program knows {KNOWN}; upgrade",
    ),
    "no right": (
        lambda: changed("CREATE ROLE stranger LOGIN").replace("//orc@", "//stranger@"),
        StoreRefused,
        r"permission denied for schema orc.*orc store init",
    ),
    "a secret in what is no address": (
        lambda: f"postgresql://orc:{SECRET}@host/db?nonsense={SECRET}",
        UsageError,
        r"The address of a store is a URL such as postgresql://",
    ),
    "no port": (
        lambda: f"postgresql://orc:{SECRET}@127.0.0.1:http/orc",
        UsageError,
        r"http is no port, which is a number up to 65535",
    ),
    "no such port": (lambda: f"postgresql://orc:{SECRET}@127.0.0.1:99999/orc", UsageError, r"99999 is no port"),
    "no such mode": (
        lambda: f"{prepared()}?sslmode=some",
        UsageError,
        r'The address of the store at 127.0.0.1:\d+/\w+ cannot be used: invalid sslmode value: "some"\.$',
    ),
    "no such service": (lambda: "postgresql://?service=nothing", UsageError, r'definition of service "nothing" not found'),
    "no TLS": (
        lambda: f"{prepared()}?sslmode=require",
        StoreRefused,
        r"server does not support SSL, but SSL was required.*sslmode",
    ),
    "no address": (lambda: f"mysql://orc:{SECRET}@host/db", UsageError, r"The address of a store is a URL such as postgresql://"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_cannot_be_opened_is_one_sentence(case: str) -> None:
    address, kind, said = CASES[case]
    with pytest.raises(kind, match=said) as caught:
        PostgresStore(address(), "demo")
    assert type(caught.value) is kind
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


def test_a_server_that_is_too_old_is_one_sentence() -> None:
    address = prepared()
    for old in (older(address), older(shared_server().make_database())):
        said = r"The server at 127.0.0.1:\d+/\w+ is PostgreSQL 13\S* .*and a store needs 14 or newer\.$"
        with pytest.raises(Unavailable, match=said):
            PostgresStore(old, "demo")
        with pytest.raises(Unavailable, match=said):
            install(old)


def older(address: str) -> str:
    """Return an address at which the same server says that it is an older one."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve_older, args=(listener, int(address.rsplit(":", 1)[1].split("/")[0])), daemon=True).start()
    return re.sub(r":\d+/", f":{listener.getsockname()[1]}/", address)


def serve_older(listener: socket.socket, port: int) -> None:
    """Serve two clients, one after the other, and leave."""
    with listener:
        for _ in range(2):
            client, _ = listener.accept()
            with client, socket.create_connection(("127.0.0.1", port)) as server, contextlib.suppress(OSError):
                while True:
                    for one in select.select([client, server], [], [])[0]:
                        if not (said := one.recv(1 << 16)):
                            raise ConnectionResetError
                        told = re.sub(rb"(server_version\0)\d\d", rb"\g<1>13", said)
                        (server if one is client else client).sendall(told)


def test_a_newer_schema_is_not_brought_back() -> None:
    with pytest.raises(StoreNewer, match="99"):
        install(changed("UPDATE orc.store SET version = 99"))


REFUSALS = {
    "ALTER DATABASE {name} SET default_transaction_read_only = on": (StoreUnwritable, "the address of the primary server"),
    """CREATE OR REPLACE FUNCTION orc.enter() RETURNS void LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100'', MESSAGE = ''no space left''; END'""": (
        DiskFull,
        "is full; nothing was lost",
    ),
}


@pytest.mark.parametrize("statement", REFUSALS, ids=["read-only", "disk full"])
def test_a_store_that_cannot_be_written_is_one_sentence_and_can_be_read(statement: str) -> None:
    address, (kind, said) = prepared(), REFUSALS[statement]
    store = PostgresStore(address, "demo")
    store.create(*new_run(ONE))
    store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement.format(name=address.rsplit("/", 1)[1]).encode())
    store = PostgresStore(address, "demo")
    for write in (
        lambda: store.append([Append(run=ONE, expected_seq=1, at_us=1, body=b"[2]")]),
        lambda: store.post(ONE, "d1", b"x", 1),
    ):
        with pytest.raises(kind, match=said):
            write()
    assert [run.id for run in store.runs()] == [ONE]
    assert len(store.rows(ONE)) == 1
    assert store.newest()[1] == store.since(0, 9)[-1].key
    store.close()
