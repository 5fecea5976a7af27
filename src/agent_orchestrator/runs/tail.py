"""The tail of a store's journals: what every run did since, in the order in which it was committed.

It is below everything that shows or tells what happens elsewhere. A reader keeps a place, `<epoch>.<key>`, and reads on from
it, also in another process; at rest a look costs no query.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from agent_orchestrator.store.port import Store, TailRow

ROWS_MAX = 1_000


class TailPlace(NamedTuple):
    """A place in the journals of one store."""

    epoch: str
    key: int

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read a place as it is written; None for anything else."""
        epoch, dot, key = text.partition(".")
        return cls(epoch, int(key)) if dot and epoch.isalnum() and key.isdecimal() and len(key) < 19 else None

    def __str__(self) -> str:
        return f"{self.epoch}.{self.key}"


class Pulse:
    """Tells whether a store may have changed since it was last asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mark: object = None

    def has_moved(self) -> bool:
        """Return True if anything may have been committed since the last call, and at the first."""
        seen, self._mark = self._mark, self._store.mark()
        return seen != self._mark


class Tail:
    """The rows after a place, or after the newest row there is."""

    def __init__(self, store: Store, place: TailPlace | None = None) -> None:
        self._store, self._pulse = store, Pulse(store)
        newest = TailPlace(*store.newest())
        self.lost = place is not None and (place.epoch != newest.epoch or place.key > newest.key)
        """True if the place is none of this store: whoever came with it has to begin anew."""
        self.place = newest if place is None or self.lost else place
        self._more = self.place != newest

    def read(self, most: int = ROWS_MAX) -> list[TailRow]:
        """Return what was committed since the last call, at most so many rows."""
        if not self._pulse.has_moved() and not self._more:
            return []
        self._more = True  # A store that is away is read when it is back.
        rows = self._store.since(self.place.key, most)
        self._more = len(rows) == most
        if rows:
            self.place = TailPlace(self.place.epoch, rows[-1].key)
        return rows
