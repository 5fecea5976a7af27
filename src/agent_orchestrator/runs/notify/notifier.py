"""The couriers of a process that drives or serves: a thread and a connection each, so that nobody waits for a slow receiver.

A process that ends gives each a last, short turn; what is then still waiting goes with the next process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

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
        repository=settings.home.name,
    )

    def tell(message: Message, run: StoredRun | None) -> Response:
        return send(subscriber, make_sending(settings, clock, message, run))

    return Courier(subscriber, books, tell, SPACING_S if subscriber.run is None else 0.0)


def make_notice_redactor(settings: Settings, subscriber: Subscriber) -> Redactor:
    """Make what takes secrets out of messages, the subscriber's own among them."""
    return Redactor(settings.secrets(passed=[subscriber.secret_env] if subscriber.secret_env is not None else ()))


def make_sending(settings: Settings, clock: Clock, message: Message, run: StoredRun | None) -> Sending:
    """Put a message together with what it takes to tell it."""
    return Sending(message=message, home=str(settings.home), environ=settings.environ, now_s=clock.now_us() // US, run=run)


class CourierLock:
    """The right to deliver to a subscriber, which one process has at a time; its death gives it back."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / "notify" / f"{name}.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take it; False while another process has it."""
        if self._descriptor is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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


class _Thread(threading.Thread):
    """Tells one of them until the process ends. A daemon: whoever hangs in a receiver keeps nobody."""

    def __init__(self, settings: Settings, of: Round) -> None:
        super().__init__(name=f"notify-{of.name}", daemon=True)
        self.of, self._settings = of, settings
        self.ending = threading.Event()
        self.problems: list[str] = []

    def run(self) -> None:
        """Look, deliver, wait."""
        lock = CourierLock(self._settings.folder, self.of.name)
        with Orchestrator(settings=self._settings) as orchestrator:
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
                self.ending.wait(TROUBLE_S if trouble else LOOK_S)
        lock.give_back()

    def _turn(self, orchestrator: Orchestrator, post: Post | None, lock: CourierLock, *, last: bool) -> Post | None:
        if post is None:
            looks = LOCK_LOOKS if last else 1
            if self.of.alone and not any(lock.take() or _wait(LOCK_LOOK_S if last else 0) for _ in range(looks)):
                return None
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
    """The posts of this process. Begun before a run is driven, so that no fact of it is missed."""

    def __init__(self, orchestrator: Orchestrator, rounds: Sequence[Round]) -> None:
        self._clock = orchestrator.clock
        for one in rounds:
            one.make(orchestrator).register()
        self._threads = [_Thread(orchestrator.settings, one) for one in rounds]
        for thread in self._threads:
            with contextlib.suppress(RuntimeError):  # No thread is left: what waits goes with the next process.
                thread.start()

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
    notifier, rounds = None, [make_round(one) for one in own]
    try:
        rounds += [make_round(one) for one in load_subscribers(orchestrator.settings)]
    except OrcError as error:
        note(f"Notifications are not sent: {error}")
    try:
        rounds += telemetry_rounds(orchestrator.settings)
    except OrcError as error:
        note(f"Telemetry is not exported: {error}")
    try:
        notifier = Notifier(orchestrator, rounds) if rounds else None
    except OrcError as error:
        note(f"Nobody is told of this: {error}")
    try:
        yield
    finally:
        for problem in notifier.finish() if notifier is not None else ():
            note(problem)
