"""Arrays that we write ourselves, read back by the server."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.arrays import Bigints, Bodies, Booleans, Documents, Texts, register_arrays
from tests.postgres.server import shared_server

CASES: list[tuple[str, list[Any]]] = [
    ("bigint", Bigints([0, -1, 2**63 - 1, -(2**63)])),
    ("boolean", Booleans([True, None, False])),
    ("bytea", Bodies([b"", None, b"\0{}", 'a ‘quote’, \\ and "'.encode()])),
    ("text", Texts(["", "NULL", 'a ‘quote’, {comma} \\ and "'])),
    ("json", Documents(['{"a": [1, null]}', None, '"\\u00e9 é"'])),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[kind for kind, _ in CASES])
@pytest.mark.parametrize("count", [0, 1, None])
def test_the_server_reads_an_array_as_it_was_meant(kind: str, values: list[Any], count: int | None) -> None:
    given = type(values)(values[:count])
    with psycopg.connect(shared_server().url("postgres"), autocommit=True) as made:
        register_arrays(made)
        cursor = psycopg.RawCursor(made)
        cursor.execute(f"SELECT $1::{kind}[]::text[], pg_typeof($1)::text".encode(), (given,))
        [(texts, found)] = cursor.fetchall()
        plain = made.execute(f"SELECT %s::{kind}[]::text[]".encode(), (list(given),)).fetchone()
    assert found == f"{kind}[]"
    assert plain is not None
    assert texts == plain[0], "as psycopg itself would send it"
    assert len(texts) == len(given)


def test_texts_arrive_in_a_database_of_another_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    name = f"test_{uuid.uuid4().hex[:12]}"
    shared_server().execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with ServerAddress(f"{shared_server().url(name)}?client_encoding=LATIN1").connect() as made:
        register_arrays(made)
        cursor = psycopg.RawCursor(made)
        cursor.execute(b"SELECT $1::text[], length(($1::text[])[1])", (Texts(["caf\u00e9"]),))
        assert cursor.fetchall() == [(["caf\u00e9"], 4)]
