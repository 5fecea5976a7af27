"""The outbox on PostgreSQL: a reader's place moves with what it has to deliver, in one call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from agent_orchestrator.store.port import Cursor, Delivery
from agent_orchestrator.store.postgres.connection import Link


class PostgresOutbox:
    """The outbox of one repository."""

    def __init__(self, link: Link, sql: dict[str, str], known: Callable[[], int | None], repository: Callable[[], int]) -> None:
        self._link, self._sql, self._known, self._repository = link, sql, known, repository

    def cursor(self, reader: str) -> Cursor | None:
        """Return a reader's place."""
        rows = self._link.read(self._sql["select_cursor"], (self._known(), reader))
        return Cursor(*rows[0]) if rows else None

    def advance(self, reader: str, expected: int | None, to: Cursor, deliveries: Sequence[Delivery] = ()) -> bool:
        """Move a reader's place on, and keep what follows from it."""
        values = (
            *(uuid.uuid4(), self._repository(), reader, expected, to.key, to.body),
            [one.reader for one in deliveries],
            [one.key for one in deliveries],
            [one.kind for one in deliveries],
            [one.body for one in deliveries],
            [one.given_up for one in deliveries],
        )
        return bool(self._link.write(self._sql["advance"], values)[0][0])

    def deliveries(self, reader: str | None = None, *, given_up: bool | None = None) -> list[Delivery]:
        """Return what waits, in the order of the journals."""
        rows = self._link.read(self._sql["select_deliveries"], (self._known(), reader, given_up))
        return [Delivery(reader=name, key=key, kind=kind, body=body, given_up=over) for name, key, kind, body, over in rows]

    def put(self, delivery: Delivery) -> None:
        """Keep a delivery as it is now."""
        one = delivery
        values = (self._repository(), one.reader, one.key, one.kind, one.body, one.given_up)
        self._link.write(self._sql["upsert_delivery"], values)

    def drop(self, delivery: Delivery) -> None:
        """Forget a delivery."""
        self._link.write(self._sql["delete_delivery"], (self._repository(), delivery.reader, delivery.key, delivery.kind))

    def carry(self, reader: str, holder: uuid.UUID, for_s: float) -> bool:
        """Be the one who delivers to a reader, for so long from now on."""
        return bool(self._link.write(self._sql["carry"], (self._repository(), reader, holder, for_s))[0][0])
