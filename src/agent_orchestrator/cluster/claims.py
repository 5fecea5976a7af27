"""One claimed run, driven in a thread of its worker until it rests, ends, or is another worker's.

The run is driven as anywhere else: by an orchestrator in its home. Only the lease is the worker's, and everything is pushed
before it counts. It is let go of in the store last, when its remote has all of it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.cluster.homes import Homes, OpenHome
from agent_orchestrator.cluster.outputs import OutputShipper
from agent_orchestrator.cluster.posts import Posts
from agent_orchestrator.cluster.pushes import push_first
from agent_orchestrator.cluster.snapshots import TreeSnapshots
from agent_orchestrator.config import Settings, load_settings
from agent_orchestrator.config.store_address import REPOSITORY_VARIABLE, STORE_VARIABLE
from agent_orchestrator.core.effects import Tree
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.limits import STOP_GRACE_S
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import US
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.engine.process.ends import end_launches, list_living
from agent_orchestrator.errors import STORE_PASSES, Conflict, Fenced, OrcError, Shortage, Unavailable, UnknownRun
from agent_orchestrator.git.agent_trees import drop_working, keep_lost
from agent_orchestrator.git.homes import bring_files
from agent_orchestrator.git.repository import is_worktree_place
from agent_orchestrator.git.tree_returns import make_copy
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.runs.drive import drive_to_rest
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.interrupted import settle_interrupted
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.sandbox import refuse_fallen
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.runs.trees import restore_tree
from agent_orchestrator.store.port import Store, StoredRun
from agent_orchestrator.store.postgres import PostgresStore
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Claimed

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.engine.engine import World
    from agent_orchestrator.runs.agent_door import AgentDoor

AGAIN_US = 30 * US
"""A run that could not be driven here waits so long in its queue: another worker may have what is missing."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that all runs of a worker share."""

    cluster: Cluster
    homes: Homes
    settings: Settings
    may_act: Callable[[], bool]
    posts: Posts
    snapshot_s: float
    """Between two snapshots of the trees of agents at work."""
    say: Callable[[str], None]


class ClaimedOwner:
    """The ownership of a claimed run: it is let go of by its thread, later than by its driver."""

    def __init__(self, epoch: int, may_act: Callable[[], bool]) -> None:
        self.epoch, self._may_act = epoch, may_act
        self.held = True

    def may_act(self) -> bool:
        """Tell whether the worker's lease holds for long enough to start something."""
        return self.held and self._may_act()

    def release(self) -> None:
        """Nothing of this process drives it any more; what it made is still to be pushed."""
        self.held = False


class HostOwners:
    """The owners of the runs of one claimed run's home: that one is the worker's already."""

    def __init__(self, owner: ClaimedOwner, claimed: Claimed) -> None:
        self._owner, self._claimed = owner, claimed

    def own(self, run: RunId) -> Owned:
        """Return the ownership that the worker has."""
        assert run == self._claimed.run, "a home has one run"
        return self._owner

    def owner_of(self, run: RunId) -> str | None:
        """Return this process while it drives the run."""
        return f"process {os.getpid()} on {os.uname().nodename}" if run == self._claimed.run and self._owner.held else None

    def close(self) -> None:
        """Do nothing: the lease is the worker's."""


class HostOrchestrator(Orchestrator):
    """The orchestrator of one claimed run, in its home."""

    def __init__(self, host: Host, claimed: Claimed, home: OpenHome, may_act: Callable[[], bool]) -> None:
        known = {**host.settings.environ, STORE_VARIABLE: host.cluster.url, REPOSITORY_VARIABLE: claimed.repository}
        settings = load_settings(str(home.folder), known)
        self._home = home
        super().__init__(settings=settings, surface=Surface.ORC, say=host.say)
        self._owners = HostOwners(ClaimedOwner(claimed.epoch, may_act), claimed)
        self.lost: tuple[str, ...] = ()
        """The refs with what agents had written that were lost with another host."""
        share_lease(self.store, host.cluster, claimed)

    @property
    def boot(self) -> str:
        """Identify the home, too: in one that was made anew, nothing tells whether a launch of before ever ran."""
        return f"{super().boot}/{self._home.made}" if self._home.made else super().boot

    def world(self, run: StoredRun, door: AgentDoor | None = None) -> World:
        """Return a world that pushes before anything counts."""
        return msgspec.structs.replace(push_first(super().world(run, door), self._home), lost=self.lost)


def share_lease(store: Store, cluster: Cluster, claimed: Claimed) -> None:
    """Let a store write under the lease of the worker, for the run that it has claimed."""
    assert isinstance(store, PostgresStore), "workers drive runs of a shared store"
    store.leases.share(cluster.leases, claimed)


class DrivenRun(threading.Thread):
    """The thread of one claimed run."""

    def __init__(self, host: Host, claimed: Claimed, over: Callable[[], None]) -> None:
        super().__init__(name=f"run {claimed.run}", daemon=True)
        self.claimed = claimed
        self._host, self._over = host, over
        self._driver: Driver | None = None
        self._leaving = threading.Event()
        self.launches = ""
        """The folder of its launches, once it is known."""
        self._ready_us: int | None = None
        self.summary: Summary | None = None
        self.failed = ""
        self.released = False
        """True once the store says that it is not this worker's any more."""

    def leave(self) -> None:
        """Stop driving as soon as possible; agents live on."""
        self._leaving.set()
        driver = self._driver
        if driver is not None:
            with contextlib.suppress(RuntimeError):  # Its loop was closed a moment ago: it has left.
                driver.engine.loop.call_soon_threadsafe(driver.leave)

    def _may_act(self) -> bool:
        """Tell whether anything of the run may be started: it is not being left, and the worker's lease holds."""
        return not self._leaving.is_set() and self._host.may_act()

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Know the driver, from its first fact on."""
        self._driver = driver
        if self._leaving.is_set():
            driver.leave()

    def noticed(self, driver: Driver, text: str) -> None:
        """Tell it to whoever looks at the worker."""
        self._host.say(f"run {self.claimed.run}: {text}")

    def run(self) -> None:
        """Drive the run and let go of it; only a broken invariant escapes from here."""
        try:
            self._drive()
        except Fenced as error:
            self._fail(str(error))  # It is somebody else's by now: nothing is written, pushed or released.
            self._end_agents()
        except (Conflict, *STORE_PASSES) as error:
            self._fail(str(error))  # It is still ours: the worker's next look takes it up again, with its agents.
        except (OrcError, OSError) as error:
            if isinstance(error, Unavailable) and self.launches and list_living([Path(self.launches)]):
                self._fail(str(error))  # That passes; its agents go on meanwhile.
            else:
                self._give_back(str(error))
        finally:
            self._over()

    def _fail(self, why: str) -> None:
        self.failed = why
        self._host.say(f"run {self.claimed.run}: {why}")

    def _drive(self) -> None:
        host, claimed = self._host, self.claimed
        context = self._read_run().context
        self.launches = str(Path(context.home, ".git", "orc", "launches", claimed.run))
        self._over()  # The warden has to know them before anything else happens: some may live.
        home = host.homes.open(context, claimed.epoch)
        with (
            HostOrchestrator(host, claimed, home, self._may_act) as orchestrator,
            host.posts.telling(orchestrator, claimed.repository),
        ):
            run = orchestrator.find(claimed.run)
            if home.is_new:
                _bring_trees(orchestrator, run)
                orchestrator.lost = self._keep_lost(home)
            home.settle(claimed.repository)
            self._prepare(orchestrator, run)
            owner = orchestrator.own(run.id)
            shipper = self._start_shipping(orchestrator, run)
            snapshots = TreeSnapshots(home, Path(self.launches), host.snapshot_s)
            snapshots.start()
            try:
                self.summary = drive_to_rest(orchestrator, run, owner, self, self._stays, ())
            finally:
                snapshots.close()
                shipper.finish()
            self._finish(home, self.summary, snapshots)

    def _keep_lost(self, home: OpenHome) -> tuple[str, ...]:
        """Keep what lost agents had written, and push it before it is said that it is kept."""
        lost = keep_lost(home.folder, home.run, home.epoch)
        if lost:
            home.push()
            self._host.say(f"run {home.run}: what lost agents had written is kept: {', '.join(lost)}")
        return lost

    def _start_shipping(self, orchestrator: Orchestrator, run: StoredRun) -> OutputShipper:
        store = orchestrator.store
        assert isinstance(store, PostgresStore), "workers drive runs of a shared store"
        redactor = make_redactor(orchestrator, run)
        shipper = OutputShipper(store.outputs, run.id, Path(self.launches), redactor, self._host.say)
        shipper.start()
        return shipper

    def _read_run(self) -> StoredRun:
        store = PostgresStore(self._host.cluster.url, self.claimed.repository)
        try:
            found = store.run(self.claimed.run)
        finally:
            store.close()
        if found is None:
            raise UnknownRun(run=self.claimed.run, repo=self.claimed.repository)
        return found

    def _prepare(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        refuse_fallen(run, orchestrator.settings)
        run = settle_interrupted(orchestrator, run)
        restore_tree(orchestrator, run)
        hooks_of(run.system).claim(orchestrator, run)

    def _stays(self, driver: Driver) -> bool:
        """Leave a run that waits for people, who queue it again by what they say, or for the end of a rate limit."""
        parked = driver.is_parked()
        if parked:
            known = [hold.until_us for hold in driver.state.doing.holds.values() if hold.until_us is not None]
            self._ready_us = min(known, default=driver.engine.clock.now_us() + AGAIN_US)
        return not (parked or driver.waits_only_for_people())

    def _finish(self, home: OpenHome, summary: Summary, snapshots: TreeSnapshots) -> None:
        """Push what it made, let go of it, and delete the home of one that has ended.

        The agents of one that is given back are ended first: another worker starts them again.
        """
        if self._leaving.is_set() and not summary.ended:
            self._end_agents()
            self._ready_us = 0
            snapshots.keep()
        else:
            drop_working(home.folder, home.run)
        home.push()
        branch = home.push_result() if summary.ended else None
        self._release()
        where = f"; its work is on {branch}" if branch else ""
        self._host.say(f"run {self.claimed.run}: {summary.status}{where}")
        if summary.ended:
            home.remove()

    def give_up(self) -> None:
        """Let go of a run whose thread broke; the worker calls it."""
        self._give_back("internal error, see above")

    def _give_back(self, why: str) -> None:
        """End its agents, and let it wait in its queue: another worker may have what is missing here."""
        self._fail(why)
        self._end_agents()
        self._release(again_us=AGAIN_US)

    def _end_agents(self) -> None:
        if self.launches:
            end_launches([Path(self.launches)], STOP_GRACE_S)

    def _release(self, again_us: int = 0) -> None:
        """Let go of the run in the store; what cannot be said now is found by the worker's next look."""
        ready_us = self._ready_us
        try:
            store = PostgresStore(self._host.cluster.url, self.claimed.repository)
            try:
                if again_us:
                    ready_us = self._host.cluster.read_clock_us() + again_us
                share_lease(store, self._host.cluster, self.claimed)
                store.leases.release(self.claimed.run, ready_us)
                self.released = True
            finally:
                store.close()
        except (*STORE_PASSES, Shortage) as error:
            self._host.say(f"run {self.claimed.run}: {error}")


def _bring_trees(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Bring back, in a home that was just made, the uncommitted work of every tree as the journal knows it."""
    home, workdir = Path(run.context.home), Path(run.context.workdir)
    for kept in orchestrator.fold(run).state.doing.kept.values():
        if not kept.commit or kept.target or kept.commit == kept.head:
            continue
        repo, branch = kept.place
        folder = folder_of(home, run.context.run, Tree(repo=repo, branch=branch)) if branch else workdir
        if is_worktree_place(folder) and kept.branch:
            make_copy(Path(repo) if repo else home, folder, kept.branch, kept)
        elif folder == home:
            bring_files(home, kept.commit, kept.head)
