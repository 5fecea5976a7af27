"""One subscriber's post: reads on in the journals, merges what comes in quick succession, sends in order, tries again.

Everything stands in the outbox before it is tried, and a message that was tried once is never changed: whoever goes on after a
kill tells the same under the same id. Of a kind, two messages leave in a minute at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.config.subscribers import Subscriber
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import Conflict
from agent_orchestrator.runs.notify.message import Message, WaitingMessage
from agent_orchestrator.runs.notify.notices import Notice, find_notices
from agent_orchestrator.runs.notify.response import Response
from agent_orchestrator.runs.tail import ROWS_MAX, Tail, TailPlace
from agent_orchestrator.store.port import Cursor, Delivery, Outbox, Store, StoredRun, TailRow

SPACING_S = 60.0
BURST_MAX = 2
"""Messages of a kind that leave within the spacing: the first at once, a second where its process ends."""
FIRST_DELAY_S, DELAY_MAX_S = 5.0, 3600.0
GIVEN_UP_AFTER_S = 24 * 3600.0
FORGOTTEN_AFTER_S = 7 * 24 * 3600.0
"""A message that was given up is shown for so long."""

_encode, _decode = msgspec.json.encode, typed.decoder(WaitingMessage)
Window = tuple[int, int]
"""The time at which the spacing began, and the messages since."""
_windows = typed.decoder(dict[str, Window])


Tell = Callable[[Message, StoredRun | None], Response]
"""Tells a message once, with the run that it is about."""


class Parcel(msgspec.Struct):
    """A delivery of this subscriber, with its message."""

    key: int
    kind: str
    waiting: WaitingMessage
    given_up: bool = False


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """All that a courier works with."""

    store: Store
    outbox: Outbox
    clock: Clock
    redactor: Redactor
    repository: str


class Courier:
    """Delivers to one subscriber; only one process at a time may have its lock."""

    def __init__(self, subscriber: Subscriber, books: Books, tell: Tell, spacing_s: float = SPACING_S) -> None:
        self.subscriber, self._books, self._tell, self._spacing_us = subscriber, books, tell, int(spacing_s * US)
        self._name = subscriber.name
        self._parcels: list[Parcel] = []
        self._windows: dict[str, Window] = {}
        self._kept = 0
        """The place as the outbox has it."""
        self._tail: Tail | None = None
        self._epoch = ""

    def register(self) -> None:
        """Give a new subscriber its place: it is told of what happens from now on."""
        if self._books.outbox.cursor(self._name) is None:
            self._books.outbox.advance(self._name, None, Cursor(self._books.store.newest()[1]))

    def load(self) -> None:
        """Read how far it has come, whoever went that far."""
        books = self._books
        self.register()
        found = books.outbox.cursor(self._name)
        assert found is not None, "it was registered"
        self._kept, self._windows = found.key, _windows(found.body) if found.body else {}
        self._epoch = books.store.newest()[0]
        self._tail = Tail(books.store, TailPlace(self._epoch, found.key))
        self._parcels = [self._unpack(one) for one in books.outbox.deliveries(self._name)]
        old_us = books.clock.now_us() - int(FORGOTTEN_AFTER_S * US)
        for parcel in [one for one in self._parcels if one.given_up and one.waiting.since_us < old_us]:
            self._drop(parcel)

    def turn(self, *, last: bool = False, again: bool = False) -> None:
        """Read on and send what is due.

        The `last` turn of a process does not wait for others of the kind; `again` tries at once what failed, and was given up.
        """
        if again:
            self._parcels = [msgspec.structs.replace(one, given_up=False) for one in self._parcels]
        tried: set[tuple[int, str]] = set()
        while True:
            self._read()  # Again after each message, which may have taken long: nobody else reads meanwhile.
            parcel = self._next(tried, last=last, again=again)
            if parcel is None:
                break
            tried.add((parcel.key, parcel.kind))
            self._try(parcel)
        if last and self._tail is not None and self._tail.place.key != self._kept:
            self._advance(self._tail.place.key, ())

    @property
    def problems(self) -> list[str]:
        """The problems of what could not be told."""
        return [one.waiting.problem for one in self._parcels if one.waiting.problem]

    def _read(self) -> None:
        assert self._tail is not None, "it was loaded"
        while rows := self._tail.read():
            changed = self._sort(rows)
            if changed or rows[-1].key - self._kept >= ROWS_MAX:
                self._advance(rows[-1].key, changed)

    def _sort(self, rows: Iterable[TailRow]) -> list[Parcel]:
        """Put the notices of some rows into messages; return those that are new or have one more."""
        now_us, store, changed = self._books.clock.now_us(), self._books.store, dict[tuple[int, str], Parcel]()
        runs: dict[str, StoredRun | None] = {}
        for row in rows:
            if row.body is None or self.subscriber.run not in (None, row.run):
                continue
            if row.at_us < now_us - int(GIVEN_UP_AFTER_S * US):
                continue
            run = runs[row.run] if row.run in runs else runs.setdefault(row.run, store.run(row.run))
            if run is None:
                continue
            for notice in find_notices(row, run, anew=self.subscriber.run is not None):
                if notice.kind in self.subscriber.kinds and (notice.ends or not self.subscriber.ends_only):
                    parcel = self._pack(row.key, self._redact(notice), now_us)
                    changed[parcel.key, parcel.kind] = parcel
        return list(changed.values())

    def _redact(self, notice: Notice) -> Notice:
        clean = self._books.redactor.redact_text
        return msgspec.structs.replace(notice, name=clean(notice.name), detail=clean(notice.detail))

    def _pack(self, key: int, notice: Notice, now_us: int) -> Parcel:
        """Put a notice into the message of its kind that is still open, or into a new one."""
        for parcel in self._parcels:
            if parcel.kind == notice.kind and parcel.waiting.tries == 0 and not parcel.given_up:
                parcel.waiting = parcel.waiting.with_notice(notice)
                return parcel
        began_us = self._windows.get(notice.kind, (0, 0))[0]
        ends_us = began_us + self._spacing_us
        due_us = ends_us if began_us <= now_us < ends_us else now_us
        parcel = Parcel(key=key, kind=notice.kind, waiting=WaitingMessage(notices=(notice,), due_us=due_us))
        self._parcels.append(parcel)
        return parcel

    def _next(self, tried: set[tuple[int, str]], *, last: bool, again: bool) -> Parcel | None:
        """Return the message to send now: one that failed goes before all others, so that they stay in order."""
        now_us = self._books.clock.now_us()
        waiting = [one for one in self._parcels if not one.given_up]
        begun = [one for one in waiting if one.waiting.tries]
        for parcel in begun or waiting:
            if (parcel.key, parcel.kind) in tried:
                return None
            due_us, hurries = parcel.waiting.due_us, last and not begun and self._windows.get(parcel.kind, (0, 0))[1] < BURST_MAX
            # A clock that was set back must not keep it for ever.
            if again or hurries or due_us <= now_us or due_us - now_us > DELAY_MAX_S * US:
                return parcel
            if begun:
                return None
        return None

    def _try(self, parcel: Parcel) -> None:
        books, now_us = self._books, self._books.clock.now_us()
        waiting = parcel.waiting
        if not waiting.tries:
            began_us, count = self._windows.get(parcel.kind, (0, 0))
            within = began_us <= now_us < began_us + self._spacing_us
            self._windows[parcel.kind] = (began_us, count + 1) if within else (now_us, 1)
        since_us = waiting.since_us or now_us
        parcel.waiting = waiting = msgspec.structs.replace(waiting, tries=waiting.tries + 1, since_us=since_us)
        self._advance(self._kept, [parcel])  # From here on it is what it is, under this id.
        message = Message(
            id=f"orc-{self._epoch}-{parcel.key}-{parcel.kind}",
            kind=parcel.kind,
            notices=waiting.notices,
            count=waiting.count,
            repository=books.repository,
        )
        reply = self._tell(message, books.store.run(waiting.notices[-1].run))
        if reply.ok:
            self._drop(parcel)
            return
        delay_s = min(DELAY_MAX_S, max(FIRST_DELAY_S * 2 ** min(waiting.tries - 1, 20), reply.after_s))
        due_us = books.clock.now_us() + int(delay_s * US)
        parcel.waiting = msgspec.structs.replace(waiting, due_us=due_us, problem=books.redactor.redact_text(reply.said))
        parcel.given_up = reply.final or due_us - since_us > GIVEN_UP_AFTER_S * US
        books.outbox.put(self._wrap(parcel))

    def _advance(self, key: int, parcels: Iterable[Parcel]) -> None:
        to = Cursor(key, _encode(self._windows))
        moved = self._books.outbox.advance(self._name, self._kept, to, [self._wrap(one) for one in parcels])
        if not moved:
            raise Conflict(run=self._name, expected=self._kept, found=-1)
        self._kept = key

    def _drop(self, parcel: Parcel) -> None:
        self._books.outbox.drop(self._wrap(parcel))
        self._parcels.remove(parcel)

    def _wrap(self, parcel: Parcel) -> Delivery:
        body = _encode(parcel.waiting)
        return Delivery(reader=self._name, key=parcel.key, kind=parcel.kind, body=body, given_up=parcel.given_up)

    def _unpack(self, delivery: Delivery) -> Parcel:
        return Parcel(key=delivery.key, kind=delivery.kind, waiting=read_waiting(delivery), given_up=delivery.given_up)


def read_waiting(delivery: Delivery) -> WaitingMessage:
    """Read the message of a delivery."""
    return _decode(delivery.body)
