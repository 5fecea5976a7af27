"""The couriers of a process that drives or serves: a thread and a connection each, so that nobody waits for a slow receiver.

A process that ends gives each a last, short turn; what is then still waiting goes with the next process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from agent_orchestrator.beneath import open_own
from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import load_configuration, load_telemetry
from agent_orchestrator.config.subscribers import NoticeKind, Subscriber, Way
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.notify.courier import SPACING_S, Books, Courier
from agent_orchestrator.runs.notify.message import Message
from agent_orchestrator.runs.notify.response import Response, Sending
from agent_orchestrator.runs.notify.ways import PROGRAM_S, send
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.telemetry.exporter import READER, SpanExporter, is_installed, make_sender, refuse_missing
from agent_orchestrator.store.outbox import MemoryOutbox
from agent_orchestrator.store.port import Outbox, StoredRun

LOOK_S = 0.25
LOCK_LOOK_S, LOCK_LOOKS = 0.05, 10
"""A process that ends waits so long for another one that does, too; one that goes on delivers for it."""
OTHERS_S = 1.0
"""Between two looks whether another process still delivers."""
CARRY_S, RENEWALS = 20.0, 4
"""A claim in a shared store holds for so long after whoever made it died: longer than it takes to tell somebody once."""
TROUBLE_S = 5.0
LAST_S = 5.0
"""The time that a process which ends gives to a receiver; programs have their own."""
PROGRAMS = (Way.COMMAND, Way.SHELL, Way.DESKTOP)


def load_subscribers(settings: Settings) -> tuple[Subscriber, ...]:
    """Load the configured subscribers; raise a UsageError for a fault, and for what the user has not agreed to."""
    return load_configuration(settings).subscribers


def own_subscribers(run: StoredRun, on_wait: str | None, on_end: str | None) -> tuple[Subscriber, ...]:
    """Return the commands of `--on-wait` and `--on-end` as subscribers to one run, for as long as this process drives it."""
    made = []
    if on_wait is not None:
        asks = frozenset({NoticeKind.PERSON.value})
        made.append(Subscriber(name="--on-wait", way=Way.SHELL, target=on_wait, kinds=asks, run=run.id))
    if on_end is not None:
        made.append(Subscriber(name="--on-end", way=Way.SHELL, target=on_end, run=run.id, ends_only=True))
    return tuple(made)


def make_courier(orchestrator: Orchestrator, subscriber: Subscriber, outbox: Outbox | None = None) -> Courier:
    """Make the courier of a subscriber, on the store of an orchestrator."""
    settings, clock = orchestrator.settings, orchestrator.clock
    books = Books(
        store=orchestrator.store,
        outbox=outbox or orchestrator.store.outbox,
        clock=clock,
        redactor=make_notice_redactor(settings, subscriber),
        repository=name_of(orchestrator),
    )

    def tell(message: Message, run: StoredRun | None) -> Response:
        return send(subscriber, make_sending(settings, clock, message, run))

    return Courier(subscriber, books, tell, SPACING_S if subscriber.run is None else 0.0)


def name_of(orchestrator: Orchestrator) -> str:
    """Return what messages call the repository: the name of its folder, or that which all hosts know it by."""
    address = orchestrator.address
    return orchestrator.settings.home.name if address is None else Path(address.repository).name.removesuffix(".git")


def make_notice_redactor(settings: Settings, subscriber: Subscriber) -> Redactor:
    """Make what takes secrets out of messages, the subscriber's own among them."""
    return Redactor(settings.secrets(passed=[subscriber.secret_env] if subscriber.secret_env is not None else ()))


def make_sending(settings: Settings, clock: Clock, message: Message, run: StoredRun | None) -> Sending:
    """Put a message together with what it takes to tell it."""
    return Sending(message=message, home=str(settings.home), environ=settings.environ, now_s=clock.now_us() // US, run=run)


class CourierLock:
    """The right to deliver to a subscriber, which one process has at a time.

    On one machine it is a lock on a file, which its death gives back; in a store that hosts share, a claim that runs out.
    """

    def __init__(self, orchestrator: Orchestrator, name: str, for_s: float = CARRY_S) -> None:
        self._orchestrator, self._name, self._for_s = orchestrator, name, for_s
        self._path = orchestrator.settings.folder / "notify" / f"{name}.lock"
        self._descriptor: int | None = None
        self._holder, self._said_s = uuid.uuid4(), -for_s

    def take(self) -> bool:
        """Take it, or make sure of it; False while another process has it."""
        return self._carry() if self._orchestrator.store.remote else self._lock()

    def _carry(self) -> bool:
        now_s = self._orchestrator.clock.monotonic_s()
        if now_s - self._said_s < self._for_s / RENEWALS:
            return True
        mine = self._orchestrator.store.outbox.carry(self._name, self._holder, self._for_s)
        self._said_s = now_s if mine else -self._for_s
        return mine

    def _lock(self) -> bool:
        if self._descriptor is not None:
            return True
        descriptor = open_own(self._orchestrator.settings.folder, self._path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def give_back(self) -> None:
        """Let another process have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._said_s > 0:
            with contextlib.suppress(OrcError):  # A store that is away lets it run out.
                self._orchestrator.store.outbox.carry(self._name, self._holder, 0.0)


class Post(Protocol):
    """Reads on in the journals and tells others: a courier, or the exporter of telemetry."""

    @property
    def problems(self) -> list[str]:
        """Return what could not be told, and why."""

    def register(self) -> None:
        """Give it a place in the journals."""

    def load(self) -> None:
        """Read how far it has come."""

    def turn(self, *, last: bool = False) -> None:
        """Read on and tell."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One who is told, and how to make the post that does it on the connection of a thread."""

    name: str
    make: Callable[[Orchestrator], Post]
    alone: bool = True
    """False where no other process tells the same."""
    last_s: float = LAST_S
    carry_s: float = CARRY_S


class _Thread(threading.Thread):
    """Tells one of them until the process ends. A daemon: whoever hangs in a receiver keeps nobody."""

    def __init__(self, settings: Settings, of: Round, *, patient: bool) -> None:
        super().__init__(name=f"notify-{of.name}", daemon=True)
        self.of, self._settings = of, settings
        self._look_s, self._looks = (OTHERS_S, round(of.carry_s / OTHERS_S) + 1) if patient else (LOCK_LOOK_S, LOCK_LOOKS)
        self.ending = threading.Event()
        self.problems: list[str] = []

    def run(self) -> None:
        """Look, deliver, wait."""
        with Orchestrator(settings=self._settings) as orchestrator:
            lock = CourierLock(orchestrator, self.of.name, self.of.carry_s)
            post: Post | None = None
            while True:
                last = self.ending.is_set()
                try:
                    post = self._turn(orchestrator, post, lock, last=last)
                    trouble = False
                except (OrcError, OSError) as error:
                    post, trouble = None, True
                    self.problems = [str(error)]
                if last:
                    break
                self.ending.wait(TROUBLE_S if trouble else LOOK_S if post is not None else OTHERS_S)
            lock.give_back()

    def _turn(self, orchestrator: Orchestrator, post: Post | None, lock: CourierLock, *, last: bool) -> Post | None:
        looks = self._looks if last and post is None else 1
        if self.of.alone and not any(lock.take() or _wait(self._look_s if last else 0) for _ in range(looks)):
            return None
        if post is None:
            post = self.of.make(orchestrator)
            post.load()
        post.turn(last=last)
        self.problems = post.problems
        return post


def _wait(seconds: float) -> bool:
    """Wait a moment, and say that nothing came of it."""
    threading.Event().wait(seconds)
    return False


def make_round(subscriber: Subscriber) -> Round:
    """Return how a subscriber is told."""
    outbox = MemoryOutbox() if subscriber.run is not None else None
    return Round(
        name=subscriber.name,
        make=lambda orchestrator: make_courier(orchestrator, subscriber, outbox),
        alone=outbox is None,
        last_s=LAST_S + (PROGRAM_S if subscriber.way in PROGRAMS else 0.0),
        carry_s=CARRY_S + (PROGRAM_S if subscriber.way in PROGRAMS else 0.0),
    )


def telemetry_rounds(settings: Settings) -> tuple[Round, ...]:
    """Return how a collector is told, if telemetry is on; raise Unavailable where the exporter is not installed."""
    telemetry = load_telemetry(settings)
    # Variables may be meant for other programs: without the extra they are nothing that a run should speak of.
    if telemetry is None or (telemetry.endpoint is None and not is_installed()):
        return ()
    refuse_missing()
    make = partial(make_sender, telemetry)
    return (Round(name=READER, make=lambda orchestrator: SpanExporter(orchestrator.store, orchestrator.clock, make)),)


class Notifier:
    """The posts of this process. Begun before a run is driven, so that no fact of it is missed.

    One with a place to stand outlives the run and its home: its last turn waits until a claim of a host that died has run out.
    """

    def __init__(self, orchestrator: Orchestrator, rounds: Sequence[Round], place: Path | None = None) -> None:
        self._clock, settings = orchestrator.clock, orchestrator.settings
        for one in rounds:
            one.make(orchestrator).register()
        self._threads = [
            _Thread(msgspec.structs.replace(settings, home=place or settings.home), one, patient=place is not None)
            for one in rounds
        ]
        for thread in self._threads:
            with contextlib.suppress(RuntimeError):  # No thread is left: what waits goes with the next process.
                thread.start()

    def end(self) -> None:
        """Let each have its last turn, and do not wait for it."""
        for thread in self._threads:
            thread.ending.set()

    @property
    def has_problems(self) -> bool:
        """True while something could not be told, and waits to be tried again."""
        return any(thread.problems for thread in self._threads)

    def finish(self) -> list[str]:
        """Give each a last turn, for a while; return what went wrong with the commands of this process."""
        begun_s = self._clock.monotonic_s()
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.ending.set()
        for thread in started:
            thread.join(max(0.0, begun_s + thread.of.last_s - self._clock.monotonic_s()))
        own = ((one.of.name, one.problems) for one in self._threads if not one.of.alone)
        return [f"the {name} command {problem}; the run is not affected." for name, problems in own for problem in problems]


@contextlib.contextmanager
def notifying(orchestrator: Orchestrator, own: Sequence[Subscriber], note: Callable[[str], object]) -> Iterator[None]:
    """Tell subscribers what happens meanwhile; whatever is wrong with that is a note, and stops nobody."""
    notifier = begin_notifying(orchestrator, own, note)
    try:
        yield
    finally:
        for problem in notifier.finish() if notifier is not None else ():
            note(problem)


def begin_notifying(
    orchestrator: Orchestrator, own: Sequence[Subscriber], note: Callable[[str], object], place: Path | None = None
) -> Notifier | None:
    """Begin to tell subscribers what happens; None where there is nobody to tell."""
    rounds = [make_round(one) for one in own]
    try:
        rounds += [make_round(one) for one in load_subscribers(orchestrator.settings)]
    except OrcError as error:
        note(f"Notifications are not sent: {error}")
    try:
        rounds += telemetry_rounds(orchestrator.settings)
    except OrcError as error:
        note(f"Telemetry is not exported: {error}")
    try:
        return Notifier(orchestrator, rounds, place) if rounds else None
    except OrcError as error:
        note(f"Nobody is told of this: {error}")
        return None
