"""Runs are placed by queues of DBOS in the same database: a workflow per claimable run says "please drive it", on one worker.

    orc/POOL                                   a queue, as wide on each worker as its capacity
    REPOSITORY/RUN/EPOCH.POOL.PRIORITY.N       a workflow: the N-th hint at a run under its epoch, PENDING while it is driven

A hint ends in a claim of ours, and nothing else makes a run somebody's. DBOS does not know which workers are dead, and forgets
an ended workflow whatever became of its run. So a thread compares, every few seconds, what could be claimed with the hints that
are under way, and hints again. Its calls wait for as long as the server is away: nothing else of the worker waits for it.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from dbos import DBOS, DBOSPortableJSONSerializer, Queue, SetEnqueueOptions, SetWorkflowID
from dbos import WorkflowStatus as Known
from dbos import error as dbos_errors
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError

from agent_orchestrator.cluster.placing.port import Seat
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import SystemClock, boottime_s
from agent_orchestrator.errors import STORE_PASSES, Refused, StoreAway, Unavailable
from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.cluster import Claimable
from agent_orchestrator.store.postgres.connection import connect_bounded
from agent_orchestrator.store.postgres.leases import Claimed

APPLICATION, VERSION = "orc", "orc-hints-1"
"""Pinned: DBOS hands a workflow only to the version that enqueued it, and by itself makes one up from the code."""
FUNCTION = "drive"
UNDER_WAY = ("ENQUEUED", "DELAYED", "PENDING")
LOOK_S, TIDY_S = 3.0, 30.0
"""Between two looks for runs without a hint, and two for hints of workers that are dead."""
HINTS_MAX = 100
"""Runs that are looked at, and old hints that are deleted, at once."""
KEPT_S = 86_400
LEAVE_S = 10.0
CONNECTIONS, MORE_CONNECTIONS = 2, 4
EVER_S = 1_000_000_000
FIRST_MAX = 2**30
"""DBOS counts priorities from 1, the most urgent; ours is taken from this."""


class Hint:
    """A workflow of DBOS that runs on this worker, until what it hints at is over here."""

    def __init__(self, repository: str, run: str) -> None:
        self.repository, self.run = repository, run
        self.claim, self.over = uuid.uuid4(), threading.Event()
        self.answer = "not taken"


class DbosPlacing:
    """A process of DBOS inside the worker; there can be one in a process."""

    def __init__(self, seat: Seat) -> None:
        self._seat, self._cluster = seat, seat.cluster
        self._queue_name = f"orc/{seat.pool}"
        self._executor = f"{seat.name}.{seat.cluster.leases.incarnation}"
        self._hints: deque[Hint] = deque()
        self._held: dict[Claimed, Hint] = {}
        self._unshown: dict[Claimed, Hint] = {}
        """What is driven without a hint, and not known to DBOS yet: an agent outlived the worker before this one."""
        self._shown: dict[str, Hint] = {}
        self._look, self._closed = threading.Event(), threading.Event()
        self._looking = threading.Thread(target=self._look_on, name="hints", daemon=True)
        self._ending: threading.Thread | None = None

    def open(self) -> None:
        """Start DBOS, which makes its tables where there are none, and look for what waits."""
        self._refuse_mix()
        self._engine = start_dbos(self._cluster.address, self._executor, self._connect, self._prepare)
        self._queue: Queue = DBOS.register_queue(
            self._queue_name, worker_concurrency=self._seat.capacity, on_conflict="always_update"
        )
        self._looking.start()

    def _refuse_mix(self) -> None:
        """Refuse another capacity than that of workers which were here first: DBOS keeps one number for a queue."""
        pool = [one for one in self._cluster.list_workers() if one.pool == self._seat.pool and one.lease_s > 0]
        since_s = min((one.joined_s for one in pool if one.name == self._seat.name), default=0.0)
        others = (one for one in pool if one.name != self._seat.name and one.joined_s > since_s)
        earlier = (one for one in others if one.capacity != self._seat.capacity)
        if (other := next(earlier, None)) is not None:
            why = f"The workers of pool {other.pool} drive {other.capacity} at once ({other.name} on {other.host}), this one"
            raise Refused(why=f"{why} {self._seat.capacity}: a queue of DBOS has one number; give --capacity {other.capacity}.")

    def _prepare(self) -> None:
        """Say what there is to run, before anything is handed out."""

        @DBOS.workflow(name=FUNCTION)
        def drive(repository: str, run: str) -> str:
            return self._hold(repository, run)

        self._drive = drive
        DBOS.listen_queues([self._queue_name])

    def _connect(self) -> Any:
        """Connect for DBOS; once closed never again, because it asks for ever."""
        if self._closed.is_set() and self._ending is None:
            raise StoreAway(place=self._cluster.address.shown, detail="the worker leaves")
        return connect_bounded(self._cluster.address)

    def _hold(self, repository: str, run: str) -> str:
        """Be the workflow of a hint: pass it on, and last until it is over here."""
        hint = self._shown.pop(str(DBOS.workflow_id), None)
        if hint is None:
            hint = Hint(repository, run)
            self._hints.append(hint)
            self._seat.wake()
            if self._closed.is_set():
                hint.over.set()
        hint.over.wait()
        return hint.answer

    def is_waiting(self) -> bool:
        """Tell whether there is a hint; a run that was announced is hinted at first."""
        if f"queue/{self._seat.pool}" in self._cluster.hear():
            self._look.set()
        return bool(self._hints)

    def take(self, room: int) -> list[Claimed]:
        """Claim what was hinted at; what cannot be claimed, or has no room, is looked at again by everybody."""
        found: list[Claimed] = []
        while self._hints:
            hint, claimed = self._hints[0], None
            if len(found) < room:
                claimed = self._cluster.claim_hinted(hint.claim, self._seat.pool, (hint.repository, hint.run), self._seat.ttl_s)
            self._hints.popleft()
            if claimed is None:
                hint.over.set()
            else:
                hint.answer = f"driven under epoch {claimed.epoch}"
                self._held[claimed] = hint
                found.append(claimed)
        return found

    def settle(self, driven: Collection[Claimed]) -> None:
        """End the hints of what is driven here no more, and let DBOS know of what is driven without one."""
        for claimed in [one for one in self._held if one not in driven]:
            self._held.pop(claimed).over.set()
        for claimed in driven:
            if claimed not in self._held:
                hint = Hint(claimed.repository, claimed.run)
                hint.answer = f"driven under epoch {claimed.epoch}"
                self._held[claimed] = self._unshown[claimed] = hint
                self._look.set()

    def leave(self) -> None:
        """Stop the queue of this worker; workflows that run are waited for, in a thread."""
        if self._ending is None and not self._closed.is_set():
            self._ending = threading.Thread(target=self._end, name="hints end", daemon=True)
            self._ending.start()

    def _end(self) -> None:
        self._closed.set()
        self._look.set()
        self._looking.join()
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=EVER_S)
        self._engine.dispose()

    def close(self) -> None:
        """Let every hint go and DBOS end; while the store is away it is left to itself."""
        self.leave()
        for hint in (*self._hints, *self._held.values()):
            hint.over.set()
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.join(LEAVE_S)

    def _look_on(self) -> None:
        tidied_s = -TIDY_S
        while not self._closed.is_set():
            try:
                self._show()
                self._hint()
                if boottime_s() - tidied_s >= TIDY_S:
                    self._tidy()
                    tidied_s = boottime_s()
            except STORE_PASSES:
                pass  # The worker says so.
            except (dbos_errors.DBOSException, SQLAlchemyError) as error:
                self._seat.say(f"DBOS: {_first_line(self._cluster.address, error)}")
            self._look.wait(LOOK_S)
            self._look.clear()

    def _show(self) -> None:
        """Let DBOS's tables have what this worker drives without a hint of theirs."""
        for claimed, hint in list(self._unshown.items()):
            name = f"{claimed.repository}/{claimed.run}/{claimed.epoch - 1}.{self._seat.pool}.here"
            self._shown[name] = hint
            with SetWorkflowID(name):
                DBOS.start_workflow(self._drive, claimed.repository, claimed.run)
            del self._unshown[claimed]

    def _hint(self) -> None:
        """Enqueue a workflow for what could be claimed and has none under way. Others do the same, and find the same id."""
        waiting = self._cluster.list_claimable(self._seat.pool, self._seat.ttl_s, HINTS_MAX)
        if not waiting:
            return
        names = [self._name(one, 0) for one in waiting]
        known = {one.workflow_id: one for one in _list(workflow_ids=names)}
        living = self._cluster.list_incarnations()
        for one, name in zip(waiting, names, strict=True):
            earlier = _list(workflow_id_prefix=name.removesuffix("0")) if name in known else []
            if not any(is_under_way(hint, living) for hint in (*earlier, *filter(None, [known.get(name)]))):
                self._enqueue(one, len(earlier))

    def _name(self, one: Claimable, number: int) -> str:
        return f"{one.repository}/{one.run}/{one.epoch}.{self._seat.pool}.{one.priority}.{number}"

    def _enqueue(self, one: Claimable, number: int) -> None:
        first = min(max(FIRST_MAX - one.priority, 1), 2 * FIRST_MAX - 1)
        with SetWorkflowID(self._name(one, number)), SetEnqueueOptions(priority=first):
            self._queue.enqueue(self._drive, one.repository, one.run)

    def _tidy(self) -> None:
        """End what DBOS believes to run on workers that are dead, and forget hints of long ago."""
        pending = _list(status="PENDING", name=FUNCTION)
        living = self._cluster.list_incarnations()
        if dead := [one.workflow_id for one in pending if not is_under_way(one, living)]:
            DBOS.cancel_workflows(dead)
        before = datetime.fromtimestamp(SystemClock().now_us() / US - KEPT_S, UTC).isoformat()
        old = _list(status=["SUCCESS", "ERROR", "CANCELLED"], name=FUNCTION, completed_before=before, limit=HINTS_MAX)
        if old:
            DBOS.delete_workflows([one.workflow_id for one in old])


def start_dbos(
    address: ServerAddress, executor: str, connect: Callable[[], Any], prepare: Callable[[], None] = lambda: None
) -> Engine:
    """Start DBOS in this process, which makes its tables where there are none; raises Unavailable."""
    pool = {"pool_size": CONNECTIONS, "max_overflow": MORE_CONNECTIONS, "pool_pre_ping": True}
    engine = create_engine("postgresql+psycopg://", creator=connect, **pool)
    try:
        DBOS(
            config={
                "name": APPLICATION,
                "application_version": VERSION,
                "executor_id": executor,
                "system_database_engine": engine,
                "serializer": DBOSPortableJSONSerializer(),
                "log_level": "CRITICAL",
            }
        )
        prepare()
        DBOS.launch()
    except (dbos_errors.DBOSException, SQLAlchemyError) as error:
        DBOS.destroy(destroy_registry=True)
        engine.dispose()
        raise Unavailable(detail=f"DBOS cannot place runs in {address.shown}: {_first_line(address, error)}") from None
    return engine


def prepare_database(address: ServerAddress) -> None:
    """Make the tables of DBOS, or bring them to its version; raises Unavailable."""
    engine = start_dbos(address, f"init.{uuid.uuid4()}", lambda: connect_bounded(address))
    DBOS.destroy(destroy_registry=True)
    engine.dispose()


def _first_line(address: ServerAddress, error: Exception) -> str:
    return address.without_secrets(str(error).partition("\n")[0])


def _list(**which: Any) -> Sequence[Known]:
    return DBOS.list_workflows(**which, load_input=False, load_output=False)


def is_under_way(hint: Known, living: Collection[str]) -> bool:
    """Tell whether a hint can still end in a claim: it waits, or it is with a worker that lives."""
    if hint.status == "PENDING":
        return str(hint.executor_id).rpartition(".")[2] in living
    return hint.status in UNDER_WAY
