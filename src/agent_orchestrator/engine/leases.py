"""Owners by leases: a process makes itself known to the store and renews its lease there, and runs are driven by its epoch.

The server's clock says for others when a lease is over; here it is over a little sooner, by a clock that counts while the
machine is suspended and from before a renewal was sent. So whoever was frozen or cut off finds out by itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.clock import boottime_s, place_id
from agent_orchestrator.engine.process.ends import is_alive
from agent_orchestrator.errors import OrcError, RunBusy, StoreAway
from agent_orchestrator.store.postgres.leases import Driven, Leases, Worker

log = logging.getLogger(__name__)

LEASE_S = 15.0
BEATS = 3
"""Renewals per lease: two may be lost."""
AGAIN_S = 1.0


def this_worker(**about: object) -> Worker:
    """Describe this process to others."""
    host = os.uname().nodename
    return Worker(**{"name": f"{host}-{os.getpid()}", "host": host, "boot": place_id(), "pid": os.getpid(), **about})  # type: ignore[arg-type]


class LeasedRun:
    """A run that this process drives by its lease."""

    def __init__(self, owners: LeaseOwners, leases: Leases, run: RunId) -> None:
        self._owners, self._leases, self._run = owners, leases, run
        self.held = True

    @property
    def epoch(self) -> int:
        """Return the epoch; 0 until there is such a run."""
        return self._leases.epoch(self._run)

    def may_act(self) -> bool:
        """Return True while the lease holds, and the store has not said that the run is somebody else's."""
        return self.held and self._owners.holds(self._run)

    def release(self) -> None:
        """Let go of it; while the store is away the end of the lease does."""
        self.held = False
        with contextlib.suppress(StoreAway):
            self._leases.release(self._run)


class LeaseOwners:
    """The lease of this process, renewed by a thread of its own from the first run that is taken up."""

    def __init__(
        self, leases: Leases, worker: Worker, *, ttl_s: float = LEASE_S, clock: Callable[[], float] = boottime_s
    ) -> None:
        self._leases, self._worker, self._ttl_s, self._clock = leases, worker, ttl_s, clock
        self._good_until = -1.0
        self._lost: set[str] = set()
        """Runs that somebody else took up while the lease was over."""
        self._beating: threading.Thread | None = None
        self._over = threading.Event()
        self.draining = False
        """True once somebody asked this worker to take up nothing new."""

    def own(self, run: RunId) -> LeasedRun:
        """Take a run up; also from a process of this machine that is dead, and from any whose lease is over."""
        self.join()
        answer = self._leases.own(run)
        if isinstance(answer, Driven) and answer.worker is None:  # our own lease was over
            self.beat()
            answer = self._leases.own(run)
        elif isinstance(answer, Driven) and self._is_dead(answer):
            answer = self._leases.own(run, dead=answer.worker)
        if isinstance(answer, Driven):
            raise RunBusy(run=run, owner=say_driver(answer))
        self._lost.discard(run)
        return LeasedRun(self, self._leases, run)

    def owner_of(self, run: RunId) -> str | None:
        """Return who drives the run now; nobody whose lease is over, and no process that is known to be dead."""
        found = self._leases.owner(run)
        return None if found is None or found.over or self._is_dead(found) else say_driver(found)

    def holds(self, run: RunId) -> bool:
        """Return True if the lease is good now, and the run ours as far as anybody can know."""
        return self._clock() < self._good_until and run not in self._lost

    def join(self) -> None:
        """Make this process known, and keep its lease from now on."""
        if self._beating is not None:
            return
        started_s = self._clock()
        self._leases.join(self._worker, self._ttl_s)
        self._good_until = started_s + self._ttl_s
        self._beating = threading.Thread(target=self._keep_beating, name="orc-lease", daemon=True)
        self._beating.start()

    def beat(self) -> bool:
        """Renew the lease once; False if the store does not know this process any more. Raises StoreAway."""
        started_s = self._clock()
        answer = self._leases.beat(self._ttl_s)
        if answer is None:
            self._good_until = -1.0
            return False
        if started_s >= self._good_until:
            # It was over for a while, and somebody may have taken runs up: nothing is done by it before that is known.
            mine = self._leases.mine()
            self._lost.update(run for run, epoch in self._leases.driven() if mine.get(run) != epoch)
        self._good_until = started_s + self._ttl_s
        self.draining = answer.drain
        return True

    def _is_dead(self, driven: Driven) -> bool:
        """Return True for a process of this very place that is gone."""
        return driven.boot == self._worker.boot and not is_alive(driven.pid)

    def _keep_beating(self) -> None:
        pause_s = self._ttl_s / BEATS
        while not self._over.wait(pause_s):
            try:
                known = self.beat()
                pause_s = self._ttl_s / BEATS
            except OrcError as error:
                log.info("The lease could not be renewed: %s", error)
                pause_s = min(AGAIN_S, self._ttl_s / BEATS)
                continue
            if not known:
                log.warning("The store does not know this process any more; its runs are others' to take up.")
                return

    def close(self) -> None:
        """Stop renewing, and be forgotten."""
        self._over.set()
        if self._beating is not None:
            self._beating.join()
            self._beating = None
            with contextlib.suppress(OrcError):
                self._leases.leave()


def say_driver(driven: Driven) -> str:
    """Name a process to people."""
    return f"process {driven.pid} on {driven.host}"
