"""The schema `orc` of a database: made, brought to this version, and checked by every connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from agent_orchestrator.errors import StoreNewer, StoreUnprepared, Unavailable
from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.failures import connection_error, statement_error
from agent_orchestrator.store.postgres.patience import LONGER, PatientConnection
from agent_orchestrator.store.queries import migrations, newest_version, queries

SQL = Path(__file__).parent / "sql"
OLDEST = 14
"""The first version of PostgreSQL that a store can be on."""
ABSENT = frozenset({"42P01", "3F000"})


def install(url: str, *, create: bool = True) -> int:
    """Make the schema, unless only an older one is to be brought to this version; returns its version before, 0 for none.

    All or nothing, one process after the other. Raises StoreNewer, and Unavailable while anybody drives runs by an older schema.
    """
    address = ServerAddress(url)
    try:
        made = address.connect()
    except psycopg.Error as error:
        raise connection_error(address, error) from error
    with made:
        _check_server(address, made)
        try:
            return _install(address, made, create=create)
        except psycopg.Error as error:
            raise statement_error(address, error) from error


def _install(address: ServerAddress, made: psycopg.Connection, *, create: bool) -> int:
    sql, scripts = queries(SQL), migrations(SQL)
    made.execute(sql["lock_schema"].encode())
    found = _version(made.execute(sql["find_schema"].encode()).fetchone(), made)
    if not found and not create:
        raise StoreUnprepared(place=address.shown, why="holds no store yet", command="init")
    if found > len(scripts):
        raise StoreNewer(path=f"at {address.shown}", found=found, known=len(scripts))
    if 0 < found < len(scripts):
        row = made.execute(sql["count_drivers"].encode()).fetchone()
        if row is not None and row[0]:
            detail = f"The store at {address.shown} needs a new schema while {row[0]} processes drive runs; drain or pause them"
            raise Unavailable(detail=detail)
        made.execute(sql["forget_workers"].encode())
    for script in scripts[found:]:
        made.execute(script.encode())
    if found != len(scripts):
        made.execute(sql["set_version"].encode(), (len(scripts),))
    return found


def _check_server(address: ServerAddress, made: psycopg.Connection) -> None:
    """Raise Unavailable for a server that is too old: its first statement might pass, and a later one not."""
    if made.info.server_version < OLDEST * 10_000:
        found = made.info.parameter_status("server_version")
        raise Unavailable(detail=f"The server at {address.shown} is PostgreSQL {found}, and a store needs {OLDEST} or newer.")


def _version(row: tuple[Any, ...] | None, made: psycopg.Connection) -> int:
    if row is None or not row[0]:
        return 0
    version = made.execute(queries(SQL)["select_version"].encode()).fetchone()
    return int(version[0]) if version is not None else 0


def open_schema(address: ServerAddress, made: psycopg.Connection) -> str:
    """Set a new connection up and return the store's ident; raises StoreUnprepared and StoreNewer."""
    known = newest_version(SQL)
    _check_server(address, made)
    try:
        made.execute(queries(SQL)["set_up"].encode())
        row = made.execute(queries(SQL)["select_store"].encode()).fetchone()
    except psycopg.Error as error:
        if error.sqlstate not in ABSENT:
            raise
        raise StoreUnprepared(place=address.shown, why="holds no store yet", command="init") from error
    assert row is not None, "a store without a row"
    ident, version, statement_s = row
    if isinstance(made, PatientConnection):
        made.answer_s = statement_s * LONGER
    if version > known:
        raise StoreNewer(path=f"at {address.shown}", found=version, known=known)
    if version < known:
        why = f"has schema version {version}, and this program needs {known}"
        raise StoreUnprepared(place=address.shown, why=why, command="migrate")
    return str(ident)
