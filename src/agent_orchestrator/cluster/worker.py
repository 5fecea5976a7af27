"""A worker: takes runs from the queue of a pool, drives each, and takes over those of workers that are gone.

It goes by what is, not by what it was told: every look compares the runs that are its own by the store's word with those that
it drives. Its lease is renewed by a thread that does nothing else; its warden ends everything when that stops.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from agent_orchestrator.beneath import open_own
from agent_orchestrator.cluster.claims import DrivenRun, Host
from agent_orchestrator.cluster.due import DueRuns
from agent_orchestrator.cluster.homes import HomeMark, Homes
from agent_orchestrator.cluster.placing import make_placing
from agent_orchestrator.cluster.placing.port import TABLE, Placing, Seat
from agent_orchestrator.cluster.posts import Posts
from agent_orchestrator.cluster.snapshots import SNAPSHOT_S
from agent_orchestrator.cluster.warden import GRACE_SHARE, ensure_warden, forget_lease, read_lease, write_lease
from agent_orchestrator.config import Settings
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import SystemClock, boottime_s
from agent_orchestrator.engine.leases import BEATS, LEASE_S, this_worker
from agent_orchestrator.engine.process.ends import list_living
from agent_orchestrator.errors import STORE_PASSES, OrcError, Refused, Unavailable, UnknownRun
from agent_orchestrator.runs.exits import ENVIRONMENT, exit_code
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Claimed
from agent_orchestrator.version import __version__

CLOCK_OFF_S = 5.0
"""Clocks of a worker and the store may be so far apart: rate limits and budgets of a day go by both."""
AWAY_S = 1.0
"""Between two beats while the store is away."""
SWEEP_S = 3600.0
"""Between two looks for homes that nobody needs."""
LOOK_S, SEARCH_S = 0.25, 3.0
"""Between two looks at what was announced, which asks nobody, and two questions to the store."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `orc worker`."""

    name: str
    root: Path
    pool: str = "default"
    capacity: int = 1
    once: str | None = None
    """The one run to drive; then it leaves."""
    ttl_s: float = LEASE_S
    snapshot_s: float = SNAPSHOT_S


class QueueWorker:
    """This process as a worker."""

    def __init__(self, cluster: Cluster, settings: Settings, options: WorkerOptions, say: Callable[[str], None]) -> None:
        self._cluster, self._settings, self._options, self._say = cluster, settings, options, say
        self._folder = options.root / "workers" / checked_id(options.name, "The worker's name")
        self._until_s = 0.0
        self._driven: dict[Claimed, DrivenRun] = {}
        self._left: dict[Claimed, str] = {}
        """Runs that are ours by the store's word and not driven, with their launches: their agents may live."""
        self._carried: set[str] = set()
        """The launches that an earlier process of this worker wrote down, while any of them lives."""
        self._wake, self._closed = threading.Event(), threading.Event()
        self._writing = threading.Lock()
        self._signals = 0
        self._swept_s = 0.0
        self._lost = ""
        self._drained = False
        self._code = 0
        """The exit code of the run that was driven last."""
        homes = Homes(options.root, settings.environ)
        posts = Posts(options.root, say)
        every_s = options.snapshot_s
        self._host = Host(
            cluster=cluster, homes=homes, settings=settings, may_act=self.may_act, posts=posts, snapshot_s=every_s, say=say
        )
        self._due = DueRuns(self._host, options.pool)

    def may_act(self) -> bool:
        """Tell whether the lease holds for long enough to start something."""
        return boottime_s() < self._until_s - self._options.ttl_s * GRACE_SHARE

    def interrupt(self) -> None:
        """Take nothing new and leave when all is driven; asked twice, give it back now. Called by a signal.

        It takes no lock, not even that of an event: the thread that the signal comes to may hold it, and would wait for itself.
        """
        self._signals += 1

    def serve(self) -> int:
        """Work until asked to leave, or with `once` until the run rests; returns the exit code, with `once` the run's."""
        options = self._options
        lock = self._lock()
        try:
            earlier = read_lease(self._folder)
            self._carried = {*earlier.runs} if earlier is not None else set()
            self._join()
            beats = threading.Thread(target=self._beat_on, name="beats", daemon=True)
            beats.start()
            placing = self._open_placing(beats)
            try:
                self._sweep()
                for claimed in self._cluster.inherit():
                    self._say(f"run {claimed.run}: taken up again; its agents lived on")
                    self._start(claimed)
                if options.once is not None:
                    self._claim_once(options.once)
                self._work(placing)
            except UnknownRun:
                if not self._carried:  # Else the warden has to end agents of an earlier process.
                    self._end(beats)
                raise
            finally:
                placing.close()
            if self._lost:
                raise Unavailable(detail=self._lost)
            self._host.posts.finish()
            self._end(beats)
        finally:
            self._closed.set()
            os.close(lock)
        return self._code if options.once is not None else 0

    def _open_placing(self, beats: threading.Thread) -> Placing:
        """Open what the store's runs are placed by; the choice is read after joining, since it is kept while workers live."""
        options = self._options
        seat = Seat(
            cluster=self._cluster,
            name=options.name,
            pool=options.pool,
            capacity=options.capacity,
            ttl_s=options.ttl_s,
            wake=self._wake.set,
            say=self._say,
        )
        try:
            # One that drives a run it was told needs no queue to tell it.
            placing = make_placing(self._cluster.read_placing() if options.once is None else TABLE, seat)
            placing.open()
        except OrcError:
            if not self._carried:  # Else the warden has to end agents of an earlier process when the lease is over.
                self._end(beats)
            raise
        return placing

    def _end(self, beats: threading.Thread) -> None:
        """End the lease: nothing is driven here any more."""
        self._closed.set()
        beats.join()
        forget_lease(self._folder)
        self._leave()

    def _leave(self) -> None:
        """Take this worker off the store's list; it has no runs any more, so a lease that cannot be ended may run out."""
        try:
            self._cluster.leases.leave()
        except STORE_PASSES as error:
            self._say(f"{error} The worker leaves all the same: its lease runs out by itself.")

    def _sweep(self) -> None:
        self._swept_s = boottime_s()
        for run in self._host.homes.sweep(self._needs):
            self._say(f"run {run}: its home here was old, and is deleted")

    def _needs(self, mark: HomeMark) -> bool:
        """Tell whether a home may be gone on with: its run has not ended, and no other host had it since.

        One that is driven may be driven by another worker of this host, which is about to write its epoch down.
        """
        found = self._cluster.find_run(mark.repository, mark.run)
        return found is not None and found[0] != "ended" and (found[0] == "driven" or found[1] <= mark.epoch)

    def _lock(self) -> int:
        """Hold the lock of this worker's name on this host: whoever had it before is dead."""
        try:
            lock = open_own(self._folder, self._folder / "lock")
        except OSError as error:
            raise Unavailable(detail=f"{self._folder} cannot be written: {error.strerror}; choose another --root.") from None
        if os.fstat(lock).st_uid != os.getuid():
            os.close(lock)
            raise Refused(why=f"{self._folder} belongs to another user; choose another --root.")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise Refused(why=f"A worker {self._options.name} runs here already; choose another --name.") from None
        return lock

    def _join(self) -> None:
        options = self._options
        off_s = (SystemClock().now_us() - self._cluster.read_clock_us()) / US
        if abs(off_s) > CLOCK_OFF_S:
            raise Unavailable(detail=f"The clock of this host is {off_s:+.0f} s off the store's; set it, then start the worker.")
        others = [one for one in self._cluster.list_workers() if one.pool == options.pool and one.lease_s > 0]
        other = next((one for one in others if one.root != str(options.root)), None)
        if other is not None:
            why = f"The workers of pool {options.pool} keep runs in {other.root} ({other.name} on {other.host}), this one in"
            raise Refused(why=f"{why} {options.root}: the root is the same on every host; give --root {other.root}.")
        about = this_worker(
            name=options.name, pool=options.pool, capacity=options.capacity, root=str(options.root), version=__version__
        )
        asked_s = boottime_s()
        self._cluster.leases.join(about, options.ttl_s)
        self._hold(asked_s)
        ensure_warden(self._folder, self._settings.environ)

    def _hold(self, asked_s: float) -> None:
        """Write down that the lease holds from when it was asked for: the server counts from a little later."""
        with self._writing:
            self._until_s = asked_s + self._options.ttl_s
            self._write()

    def _write(self) -> None:
        self._carried = {one for one in self._carried if list_living([Path(one)])}
        driven = {one.launches for one in list(self._driven.values()) if one.launches}
        runs = tuple(sorted({*driven, *self._left.values(), *self._carried}))
        write_lease(self._folder, self._until_s, self._options.ttl_s, runs)

    def _beat_on(self) -> None:
        pause_s = self._options.ttl_s / BEATS
        while not self._closed.wait(pause_s):
            asked_s = boottime_s()
            try:
                beat = self._cluster.leases.beat(self._options.ttl_s)
                pause_s = self._options.ttl_s / BEATS
            except STORE_PASSES as error:
                self._say(str(error))
                pause_s = AWAY_S
                continue
            if beat is None:
                self._lost = "The store does not know this worker any more; start it again."
                self._wake.set()
                return
            self._drained = beat.drain
            try:
                self._leave_lost(asked_s)
            except STORE_PASSES:
                continue
            self._hold(asked_s)
            if ensure_warden(self._folder, self._settings.environ):
                self._say("the warden was gone; another one was started")

    def _leave_lost(self, asked_s: float) -> None:
        """Leave, before anything may be started again, what others have taken while the lease was over."""
        if asked_s < self._until_s:
            return
        mine = self._cluster.list_claimed()
        for claimed, driven in list(self._driven.items()):
            if claimed not in mine:
                driven.leave()

    def _tell_warden(self) -> None:
        """Let the warden know the runs as they are, with the lease as it is; then whatever waits is looked at."""
        with self._writing:
            self._write()
        self._wake.set()

    def _claim_once(self, run: str) -> None:
        for claimed in self._cluster.claim_one(run):
            self._start(claimed)
        if not self._driven:
            raise UnknownRun(run=run, repo="the queue")

    def _work(self, placing: Placing) -> None:
        searched_s = -SEARCH_S
        while not self._lost:
            self._wake.wait(LOOK_S)
            self._wake.clear()
            self._reap()
            leaving = self._signals > 0 or self._drained or self._options.once is not None
            if leaving:
                placing.leave()
            if self._signals > 1:
                self._give_back()
            if leaving and not self._driven and not self._left and not self._due.busy:
                return
            try:
                placing.settle(self._driven)
                if placing.is_waiting() or boottime_s() - searched_s >= SEARCH_S:
                    searched_s = boottime_s()
                    self._search(placing, leaving=leaving)
                if boottime_s() - self._swept_s >= SWEEP_S:
                    self._sweep()
            except STORE_PASSES:
                continue  # The thread of the beats says so.

    def _search(self, placing: Placing, *, leaving: bool) -> None:
        """Compare what is ours by the store's word with what we drive, then fill what room there is."""
        mine = self._cluster.list_claimed()
        for claimed in mine:
            if claimed not in self._driven:
                self._start(claimed)
        self._left = {claimed: launches for claimed, launches in self._left.items() if claimed in mine}
        for claimed, driven in list(self._driven.items()):
            if claimed not in mine:
                driven.leave()
        may = not leaving and self.may_act()
        if may:
            self._due.look()
        for claimed in placing.take(max(0, self._options.capacity - len(self._driven)) if may else 0):
            if claimed not in self._driven:
                self._start(claimed)

    def _start(self, claimed: Claimed) -> None:
        self._say(f"run {claimed.run}: driven here, epoch {claimed.epoch}")
        driven = DrivenRun(self._host, claimed, self._tell_warden)
        self._driven[claimed] = driven
        driven.start()

    def _reap(self) -> None:
        for claimed, driven in list(self._driven.items()):
            if not driven.is_alive():
                del self._driven[claimed]
                if driven.summary is None and not driven.failed:
                    driven.give_up()
                if driven.launches and not driven.released:
                    self._left[claimed] = driven.launches
                self._code = ENVIRONMENT if driven.summary is None else exit_code(driven.summary)
                self._tell_warden()

    def _give_back(self) -> None:
        """End the agents of every run and give it back to its queue, for another worker to start them again."""
        for driven in self._driven.values():
            driven.leave()
        for driven in self._driven.values():
            driven.join()
