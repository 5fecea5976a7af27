"""The port of whatever places runs: a worker asks it for claimed ones to drive, and says what it drives.

What places runs only hints. Whose a run is, is decided by its epoch in the store, so that a hint that is late, doubled or lost
costs time and nothing else. It must never keep a run from being found: what is unfinished and nobody's is offered again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Claimed

TABLE, DBOS = "table", "dbos"
"""The choices, as the store keeps them."""


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """The worker that runs are placed on. It has joined: its lease and its incarnation are known to the store."""

    cluster: Cluster
    name: str
    pool: str
    capacity: int
    ttl_s: float
    wake: Callable[[], None]
    """Called, from any thread, when there may be something to take."""
    say: Callable[[str], None]


class Placing(Protocol):
    """Places the runs of a pool on one worker. All but `Seat.wake` happens in the worker's main thread."""

    def open(self) -> None:
        """Begin; raises Unavailable."""

    def is_waiting(self) -> bool:
        """Tell whether there may be something to take; asks what is here, not the store. Raises StoreAway."""

    def take(self, room: int) -> list[Claimed]:
        """Return runs that were claimed for this worker just now, at most so many; called every few seconds, without room too."""

    def settle(self, driven: Collection[Claimed]) -> None:
        """Know all that the worker drives; what is not there is over for this worker."""

    def leave(self) -> None:
        """Offer this worker nothing more; it still drives what it has. May be repeated."""

    def close(self) -> None:
        """End it: the worker drives nothing any more."""
