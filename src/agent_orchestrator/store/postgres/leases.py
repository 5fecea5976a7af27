"""Leases: which process drives which run, by the server's word. Each is known by a worker's key, each taking-up by an epoch.

It says what stands in the store and knows no clock; `engine/owners` keeps the lease alive and judges by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.store.postgres.connection import Link, Rows

ANSWER_SHARE, ANSWER_LEAST_S = 0.25, 0.5
"""The part of a lease that its renewal may wait for an answer: then there is time to ask again by another connection."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A process that drives runs, as it makes itself known."""

    name: str
    host: str
    boot: str
    pid: int
    pool: str = ""
    """The queue that it takes runs from; "" for a process that drives what a person started with it."""
    capacity: int = 1
    root: str = ""
    version: str = ""


class Driven(NamedTuple):
    """The process that drives a run."""

    worker: int | None
    host: str
    boot: str
    pid: int
    over: bool
    """True if its lease is over: it may be dead, or cut off."""


class Beat(NamedTuple):
    """The answer to a renewed lease."""

    drain: bool
    """True if somebody asked this worker to take up nothing new."""
    held_s: float
    """For so long the lease has been good without a gap."""


class Claimed(NamedTuple):
    """A run that this process is to drive."""

    repository: str
    run: RunId
    epoch: int


class Leases:
    """The lease of this process and the runs that it has, with a connection of its own: it must not wait for an append."""

    def __init__(self, link: Link, sql: dict[str, str], repository: str, known: Callable[[], int | None]) -> None:
        self._link, self._sql, self._repository, self._known = link, sql, repository, known
        self.worker: int | None = None
        self.incarnation = uuid.uuid4()
        self._epochs: dict[RunId, int] = {}
        self._pending: dict[RunId, uuid.UUID] = {}
        """Ids that are taken up before there is a run: whoever makes it drives it."""

    def join(self, worker: Worker, ttl_s: float) -> int:
        """Make this process known, with a lease for so long; returns its key."""
        self._link.answer_s = max(ttl_s * ANSWER_SHARE, ANSWER_LEAST_S)
        one = worker
        values = (self.incarnation, one.name, one.host, one.boot, one.pid, one.pool, one.capacity, one.root, one.version, ttl_s)
        self.worker = int(self._link.write(self._sql["join_workers"], values)[0][0])
        return self.worker

    def beat(self, ttl_s: float) -> Beat | None:
        """Renew the lease, for so long from now; None if this process is not known any more."""
        rows = self._link.write(self._sql["beat"], (self.worker, self.incarnation, ttl_s), tries=1)
        return Beat(*rows[0]) if rows else None

    def leave(self) -> None:
        """Forget this process, unless it still has runs."""
        if self.worker is not None:
            self._link.write(self._sql["leave_workers"], (self.worker, self.incarnation), tries=1)
            self.worker = None

    def own(self, run: RunId, dead: int | None = None) -> int | Driven:
        """Take a run up, also from a worker that is known to be dead; returns the epoch, or who has it.

        An id without a run is answered with 0: the run is driven by this process once it makes it.
        """
        claim = uuid.uuid4()
        values = (claim, self._known(), run, self.worker, self.incarnation, dead)
        rows = self._link.write(self._sql["own"], values)
        if not rows:
            self._pending[run] = claim
            return 0
        epoch, *driven = rows[0]
        if epoch is None:
            return Driven(*driven)
        self._epochs[run] = epoch
        return int(epoch)

    def owner(self, run: RunId) -> Driven | None:
        """Return who drives a run, or None."""
        rows = self._link.read(self._sql["select_owner"], (self._known(), run))
        return Driven(*rows[0]) if rows else None

    def release(self, run: RunId, ready_us: int | None = None) -> str | None:
        """Let go of a run, to be placed again from a time on; returns its state, None if it was ours no more."""
        self._pending.pop(run, None)
        epoch = self._epochs.pop(run, 0)
        if not epoch:
            return None
        values = (self._known(), run, self.worker, epoch, ready_us)
        state: str | None = self._link.write(self._sql["release"], values)[0][0]
        return state

    def mine(self) -> dict[RunId, int]:
        """Return the runs of this repository that this process drives by the store's word, with their epochs."""
        rows: Any = self._link.read(self._sql["select_mine"], (self._known(), self.worker))
        return dict(rows)

    def driven(self) -> list[tuple[RunId, int]]:
        """Return the runs that this process has taken up and not let go of, with their epochs."""
        return list(self._epochs.items())

    def epoch(self, run: RunId) -> int:
        """Return the epoch by which this process drives a run; 0 if it does not."""
        return self._epochs.get(run, 0)

    def pending(self, run: RunId) -> tuple[int | None, uuid.UUID | None]:
        """Return the worker and the claim that a new run of this id is made with."""
        claim = self._pending.get(run)
        return (self.worker, claim) if claim is not None else (None, None)

    def made(self, run: RunId, epoch: int) -> None:
        """Drive a run that was just made, if its id was taken up."""
        if self._pending.pop(run, None) is not None:
            self._epochs[run] = epoch

    def freed(self, run: RunId) -> None:
        """Keep the id of a run that was ours and is gone or has another one now, for the next run."""
        if self._epochs.pop(run, None) is not None:
            self._pending[run] = uuid.uuid4()

    def queue(self, run: RunId, pool: str, *, priority: int = 0, ready_us: int = 0) -> bool:
        """Put a run that nobody drives into the queue of a pool, to be placed from a time on; False if somebody has it."""
        return bool(self._link.write(self._sql["queue"], (self._known(), run, pool, priority, ready_us))[0][0])

    def claim(self, pool: str, room: int) -> list[Claimed]:
        """Take at most so many runs from the queue of a pool, of whatever repository."""
        values = (uuid.uuid4(), self.worker, self.incarnation, pool, room)
        return self._claimed(self._link.write(self._sql["claim"], values))

    def take_over(self, pool: str, room: int, ttl_s: float) -> list[Claimed]:
        """Take runs of a pool from workers whose lease is over, if our own has held for so long."""
        values = (uuid.uuid4(), self.worker, self.incarnation, pool, room, ttl_s)
        return self._claimed(self._link.write(self._sql["take_over"], values))

    def _claimed(self, rows: Rows) -> list[Claimed]:
        claimed = [Claimed(*row) for row in rows]
        self._epochs.update({one.run: one.epoch for one in claimed if one.repository == self._repository})
        return claimed

    def share(self, other: Leases, claimed: Claimed) -> None:
        """Drive a claimed run under the lease of another connection of this process, which keeps it alive."""
        self.worker, self.incarnation = other.worker, other.incarnation
        self._epochs[claimed.run] = claimed.epoch

    def close(self) -> None:
        """End the connection."""
        self._link.close()
