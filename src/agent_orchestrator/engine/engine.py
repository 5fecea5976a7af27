"""The engine of one process: drivers of runs, and what they share (store, committer, launches, publisher, clock).

It takes directives from the inbox for the runs it drives. It is the only place that knows which parts are real and
which simulated: all of them come in from outside.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.adapter import RunServer
from agent_orchestrator.bounded import read_bounded, store_of
from agent_orchestrator.core.effects import AgentChoice, Checkpoint, KeptTree, RunAgent, Tree
from agent_orchestrator.core.events import Event, Forked, WentBack
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import AgentEnded, CheckpointEnded, FileChange, Given, Instruct, Posted
from agent_orchestrator.core.limits import INBOX_POLL_S, REPORT_LIMIT_BYTES, RESULT_GRACE_S, STOP_GRACE_S
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import System
from agent_orchestrator.engine.budget.rates import Rates
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.collector import relaxed
from agent_orchestrator.engine.commit import Committer
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.launches import Launches
from agent_orchestrator.engine.overview import Overviews
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.engine.perform.checkpoint import no_trees, no_worktrees
from agent_orchestrator.engine.perform.merge import Merges, NoMerges
from agent_orchestrator.engine.publisher import Publisher
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.engine.slices import SliceQueue
from agent_orchestrator.engine.snapshots import SNAPSHOT_ROWS
from agent_orchestrator.engine.threads import Threads
from agent_orchestrator.errors import STORE_PASSES
from agent_orchestrator.store.port import Store, StoredRun

OFFLOAD_BYTES = 256 * 1024
"""More than this is read in a thread, not on the loop."""

T = TypeVar("T")


class Observer(Protocol):
    """Is told what becomes durable, and what the engine wants a person to know."""

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Some events of a run are durable."""

    def noticed(self, driver: Driver, text: str) -> None:
        """Something a person should know, which is no fact of the run."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """The parts an engine touches the world with."""

    store: Store
    launches: Launches
    clock: Clock
    boot: str
    child_env: Callable[[tuple[str, ...]], dict[str, str]]
    """The environment children start from, given the names a run passes on."""
    key_of: Callable[[AgentChoice, tuple[str, ...]], str] = lambda choice, passed: ""
    """Marks the key that an agent logs in with here, given the names that a run passes on; '' without one."""
    redactor: Redactor
    tree_of: Callable[[Path, Path], str | None]
    """Identifies a working tree; the second path is a scratch folder."""
    save_tree: Callable[[Path, Path, Checkpoint], CheckpointEnded] = no_trees
    """Keeps a working tree, its changes counted; the second path is a scratch folder."""
    list_changes: Callable[[Path, str | None, str], tuple[FileChange, ...]] = lambda folder, old, new: ()
    """Lists the files in which two commits differ, given a working tree of the repository."""
    keep_tree: Callable[[Path, Path, RunId, Tree | None], KeptTree | None] | None = None
    """Keeps a working tree so that a run can go back to it, unless it is as it was; None where nothing is kept."""
    has_tree: Callable[[Path], bool] = lambda folder: True
    """Says at once whether there may be anything to keep of a folder: it is in a repository."""
    return_trees: Callable[[WentBack | Forked], tuple[str, ...]] = lambda going: ()
    """Brings the trees of a run to the point that it went back to, or was forked at; says where what was there is kept."""
    open_tree: Callable[[Path, RunId, Tree], None] = no_worktrees
    """Makes sure of a tree of a run, given the repository and the run."""
    server_of: Callable[[EffectId], RunServer | None] = lambda effect: None
    """Gives a launch the run's MCP server with a key of its own; None where the run has none."""
    merges: Merges = NoMerges()
    """Merges branches."""
    prints: bool = True
    """False where the run's files are not to be written: its home is elsewhere."""
    overviews: Overviews | None = None
    """Writes what spans runs; None where nobody reads it."""
    lost: tuple[str, ...] = ()
    """The refs with what agents had written that were lost with another host."""
    owned: Owned | None = None
    """The run as this process has taken it up; None where nobody else could."""
    trace: Callable[[EffectId], dict[str, str]] = lambda effect: {}
    """The variables by which what a launch does becomes part of the run's trace; none while nobody traces."""
    threads: bool = True
    """True where long work may be handed to a thread; a simulation does everything in place."""
    snapshot_rows: int = SNAPSHOT_ROWS
    """The rows of a journal that lie between two snapshots at least."""
    stop_grace_s: float = STOP_GRACE_S
    result_grace_s: float = RESULT_GRACE_S
    version: str = ""


class Engine:
    """Drives any number of runs on one event loop."""

    def __init__(self, world: World, observer: Observer) -> None:
        self.loop = asyncio.get_running_loop()
        self.world, self._observer = world, observer
        self.store, self.launches, self.clock = world.store, world.launches, world.clock
        self.boot, self.redactor, self.tree_of = world.boot, world.redactor, world.tree_of
        self.save_tree = world.save_tree
        self.stop_grace_s, self.result_grace_s, self.version = world.stop_grace_s, world.result_grace_s, world.version
        self.epoch = world.owned.epoch if world.owned is not None else 0
        self.host, self.pid = os.uname().nodename, os.getpid()
        self.committer = Committer(world.store, self.loop, self._tell_late)
        self.slices = SliceQueue(self.loop, world.clock)
        self.threads = Threads(self.loop)
        self.publisher = Publisher(self)
        self.rates = Rates(world.store, world.clock)
        self.drivers: dict[str, Driver] = {}
        self.is_alone = False
        """True while one run is driven: nobody else appends in this turn of the loop."""
        self.observe = observer.happened
        """Tells the observer about facts."""
        self._poll: asyncio.TimerHandle | None = None

    async def drive(
        self, run: StoredRun, system: System, stays: Callable[[Driver], bool], inputs: Sequence[Given] = ()
    ) -> Summary:
        """Drives a run until it ends or rests; the caller holds the run's lock. `inputs` come before all others."""
        driver = Driver(self, run, system)
        self.publisher.open(driver)
        self.drivers[run.id] = driver
        self.is_alone = len(self.drivers) == 1
        for what in inputs:
            driver.deliver(what)
        self._take_inbox(driver)
        if self._poll is None:
            self._poll_inbox()
        try:
            with relaxed():
                return await driver.drive(stays)
        finally:
            driver.let_go()
            self.publisher.close(driver)
            del self.drivers[run.id]
            self.is_alone = len(self.drivers) == 1
            if not self.drivers and self._poll is not None:
                self._poll.cancel()
                self._poll = None

    def may_act(self) -> bool:
        """Return True if nobody else can have taken the run up; asked right before something is started."""
        return self.world.owned is None or self.world.owned.may_act()

    def fail(self, error: BaseException) -> None:
        """Something broke outside any driver: every run is let go, and the error reaches the caller."""
        for driver in self.drivers.values():
            driver.fail(error)

    def leave(self) -> None:
        """Stops driving; agents live on."""
        self.store.give_up()
        for driver in self.drivers.values():
            driver.leave()

    def _tell_late(self) -> None:
        for driver in self.drivers.values():
            self.notify(
                driver, "The store is away or does not answer; nothing goes on before it is known what came of the last write."
            )

    def _poll_inbox(self) -> None:
        try:
            if self.store.moved():
                self.rates.look_again()
                for driver in self.drivers.values():
                    self._take_inbox(driver)
        except STORE_PASSES:
            pass  # Somebody writes for long, or the server is away; the next look is a moment away.
        self._poll = self.loop.call_later(INBOX_POLL_S, self._poll_inbox)

    def _take_inbox(self, driver: Driver) -> None:
        for directive, body in self.store.inbox(driver.run.id):
            try:
                said = typed.decode(body, Posted)
            except msgspec.DecodeError:
                # Not written by us: refused like everything of which nobody knows who sent it.
                said = Instruct(id=directive, what="unreadable")
            driver.take_directive(msgspec.structs.replace(said, id=directive))

    def offload(self, weight: int | None, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Does light work now and heavy work (None: unknown) in a thread, then goes on with its result on the loop."""
        if not self.world.threads or (weight is not None and weight <= OFFLOAD_BYTES):
            then(work())
            return
        self.threads.submit(work).add_done_callback(lambda done: then(done.result()))

    def keep_report(self, driver: Driver, effect: RunAgent, outcome: AgentEnded) -> None:
        """Puts a copy of the newest report where people and later agents look for it."""
        if effect.report_copy is None or outcome.report is None:
            return
        content = None
        try:
            report = self.launches.directory(effect.id) / "report.json"
            content = read_bounded(report, REPORT_LIMIT_BYTES, root=store_of(report.parent))
            write_whole(driver.home, driver.home / effect.report_copy, content)
        except OSError as error:
            self.notify(driver, f"The report of {effect.unit} could not be copied to {effect.report_copy}: {error}.")
            if content is not None:
                # On a full disk: tried again with the next print-out.
                self.publisher.copy_later(driver, effect.report_copy, content)

    def notify(self, driver: Driver, text: str) -> None:
        """Tells the observer something."""
        self._observer.noticed(driver, text)


class Silent:
    """An observer that is not interested."""

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Ignores it."""

    def noticed(self, driver: Driver, text: str) -> None:
        """Ignores it."""


__all__ = ["Engine", "Observer", "Silent", "World"]
