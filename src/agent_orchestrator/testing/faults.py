"""Faults: a seeded source that the simulated world asks at every boundary.

A boundary lies between any two actions whose order matters. `Crash` there is `kill -9`: nothing after it happens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import Conflict, DiskFull, StoreAway, StoreLocked
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Append, Day, RateWindow


class Crash(SystemExit):
    """The process is gone. A SystemExit, because an event loop passes on nothing else from inside a callback."""


class Faults:
    """A source of faults. With `crash_at` it crashes there once and does nothing else; else it decides by chance."""

    def __init__(self, seed: int | None = None, *, crash_at: Sequence[int] = ()) -> None:
        self._random = random.Random(seed)
        self._crash_at = set(crash_at)
        self._chance = 0.0 if seed is None else self._random.choice((0.0, 0.01, 0.03, 0.1))
        self._store_chance = 0.0 if seed is None else self._random.choice((0.0, 0.02, 0.1))
        self.boundaries = 0
        self.crashes = 0
        self.calm = False
        """Set when a run must be able to end: nothing goes wrong any more."""

    def boundary(self) -> None:
        """Crash between two actions, or not."""
        self.boundaries += 1
        if self.calm:
            return
        if self.boundaries in self._crash_at or self._random.random() < self._chance:
            self.crashes += 1
            raise Crash

    def store_refuses(self) -> None:
        """Refuse a commit, or not: the disk may be full, the store busy or away."""
        if not self.calm and self._random.random() < self._store_chance:
            away = StoreAway(place="simulated", detail="by chance")
            raise self._random.choice((DiskFull(path="orc.db"), StoreLocked(path="orc.db", seconds=10), away))


class FaultyStore(MemoryStore):
    """A store that survives crashes, and in which a crash can come before or after a commit."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults
        self.commits = 0

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Append as any store; a crash may come before it is written, or after, before anybody knows."""
        self._faults.store_refuses()
        self._faults.boundary()
        answers = super().append(batch)
        self.commits += 1
        self._faults.boundary()
        return answers

    def moved(self) -> bool:
        """Look as in any store, which may be away."""
        self._faults.store_refuses()
        return super().moved()

    def windows(self) -> list[RateWindow]:
        """Read as from any store, which may be away."""
        self._faults.store_refuses()
        return super().windows()

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Read as from any store, which may be away."""
        self._faults.store_refuses()
        return super().day(since_us, but_for)

    def knows(self, run: RunId, text: str) -> bool:
        """Return True if a durable event of the run contains the text."""
        needle = text.encode()
        return any(needle in body for _, _, body in reversed(self.rows(run)))
