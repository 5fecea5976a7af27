"""Runs are placed by the table that they stand in: a worker reads what is ready, locks it, and has it."""

from __future__ import annotations

from collections.abc import Collection

from agent_orchestrator.cluster.placing.port import Seat
from agent_orchestrator.store.postgres.leases import Claimed


class TablePlacing:
    """The queue of the store itself."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def open(self) -> None:
        """Do nothing: the table is there."""

    def is_waiting(self) -> bool:
        """Tell whether a run was announced in the pool's queue."""
        return f"queue/{self._seat.pool}" in self._seat.cluster.hear()

    def take(self, room: int) -> list[Claimed]:
        """Claim what is queued, then take over what dead workers left."""
        if room <= 0:
            return []
        leases, seat = self._seat.cluster.leases, self._seat
        found = leases.claim(seat.pool, room)
        if len(found) < room:
            found += leases.take_over(seat.pool, room - len(found), seat.ttl_s)
        return found

    def settle(self, driven: Collection[Claimed]) -> None:
        """Do nothing: the table knows who drives what."""

    def leave(self) -> None:
        """Do nothing: who asks for nothing gets nothing."""

    def close(self) -> None:
        """Do nothing."""
