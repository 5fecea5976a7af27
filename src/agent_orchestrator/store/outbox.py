"""The outbox: how far each reader of the journals has told others what they say, and what is still to be delivered.

It knows neither who is told nor what: names, places and bodies are the reader's own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import apsw

from agent_orchestrator.store.port import Cursor, Delivery


class Fetch(Protocol):
    """Reads all rows of a named statement."""

    def __call__(self, name: str, *values: apsw.SQLiteValue) -> list[tuple[apsw.SQLiteValue, ...]]:
        """Return the rows."""


Writing = Callable[[], AbstractContextManager[None]]
"""A transaction of the store."""


class SqliteOutbox:
    """The outbox as one connection has it."""

    def __init__(self, db: apsw.Connection, sql: dict[str, str], fetch: Fetch, writing: Writing) -> None:
        self._execute, self._sql, self._fetch, self._writing = db.execute, sql, fetch, writing

    def cursor(self, reader: str) -> Cursor | None:
        """Return a reader's place."""
        rows: Any = self._fetch("select_cursor", reader)
        return Cursor(*rows[0]) if rows else None

    def advance(self, reader: str, expected: int | None, to: Cursor, deliveries: Sequence[Delivery] = ()) -> bool:
        """Move a reader's place on, and keep what follows from it."""
        with self._writing():
            found = self.cursor(reader)
            if (found.key if found is not None else None) != expected:
                return False
            self._execute(self._sql["upsert_cursor"], (reader, to.key, to.body))
            for one in deliveries:
                self._put(one)
            return True

    def deliveries(self, reader: str | None = None, *, given_up: bool | None = None) -> list[Delivery]:
        """Return what waits, in the order of the journals."""
        rows: Any = self._fetch("select_deliveries", reader, given_up)
        return [
            Delivery(reader=reader, key=key, kind=kind, body=body, given_up=bool(over)) for reader, key, kind, body, over in rows
        ]

    def put(self, delivery: Delivery) -> None:
        """Keep a delivery as it is now."""
        with self._writing():
            self._put(delivery)

    def drop(self, delivery: Delivery) -> None:
        """Forget a delivery."""
        with self._writing():
            self._execute(self._sql["delete_delivery"], (delivery.reader, delivery.key, delivery.kind))

    def carry(self, reader: str, holder: uuid.UUID, for_s: float) -> bool:
        """Say yes: a lock on a file does it."""
        return True

    def _put(self, one: Delivery) -> None:
        self._execute(self._sql["upsert_delivery"], (one.reader, one.key, one.kind, one.body, one.given_up))


class MemoryOutbox:
    """An outbox that lives as long as its process."""

    def __init__(self) -> None:
        self._cursors: dict[str, Cursor] = {}
        self._deliveries: dict[tuple[str, int, str], Delivery] = {}

    def cursor(self, reader: str) -> Cursor | None:
        """Return a reader's place."""
        return self._cursors.get(reader)

    def advance(self, reader: str, expected: int | None, to: Cursor, deliveries: Sequence[Delivery] = ()) -> bool:
        """Move a reader's place on, and keep what follows from it."""
        found = self._cursors.get(reader)
        if (found.key if found is not None else None) != expected:
            return False
        self._cursors[reader] = to
        for one in deliveries:
            self.put(one)
        return True

    def deliveries(self, reader: str | None = None, *, given_up: bool | None = None) -> list[Delivery]:
        """Return what waits, in the order of the journals."""
        found = (one for _, one in sorted(self._deliveries.items()))
        return [one for one in found if reader in (None, one.reader) and given_up in (None, one.given_up)]

    def put(self, delivery: Delivery) -> None:
        """Keep a delivery as it is now."""
        self._deliveries[delivery.reader, delivery.key, delivery.kind] = delivery

    def drop(self, delivery: Delivery) -> None:
        """Forget a delivery."""
        self._deliveries.pop((delivery.reader, delivery.key, delivery.kind), None)

    def carry(self, reader: str, holder: uuid.UUID, for_s: float) -> bool:
        """Say yes: a lock on a file does it."""
        return True
