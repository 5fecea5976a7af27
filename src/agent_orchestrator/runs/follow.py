"""A run followed from outside: the journal's new rows are read and the state kept folded, without an event loop."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.journal import Folded, begin_fold, decode_events
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.tail import Pulse
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

POLL_S = 0.2
"""The time between two pictures of a run."""
LOOK_S = 0.05
"""The time between two looks at whether the store has moved."""

Row = tuple[int, int, Sequence[Event]]
"""seq, at_us, events"""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a run's journal as plain data, with the run in one line as of then."""

    run: str
    seq: int
    """The row of the journal; events of one moment share it."""
    at: str
    """ISO 8601, in UTC."""
    event: str
    """The event's name in the journal, as in step_started."""
    data: dict[str, Any]
    """Its fields, as the journal has them."""
    summary: Summary


class Follower:
    """A run as another process moves it on."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun, folded: Folded | None = None) -> None:
        self._orchestrator, self.run = orchestrator, run
        self._pulse, self._behind = Pulse(orchestrator.store), True
        self._driven = True
        self.away: str | None = None
        """Why the store cannot be read now; what is known is as of before."""
        self.folded = folded or orchestrator.fold(run)

    @property
    def state(self) -> Any:
        """The state as of the last row read."""
        return self.folded.state

    @property
    def system(self) -> Any:
        """The run's system."""
        return self.folded.system

    def is_over(self) -> bool:
        """Tell whether the run is over."""
        return bool(self.folded.state.lifecycle.ended)

    def is_driven(self) -> bool:
        """Tell whether any process drives the run, as far as is known."""
        with contextlib.suppress(StoreAway):
            self._driven = self._orchestrator.owner(self.run) is not None
        return self._driven

    def rows(self) -> Iterator[Row]:
        """Yield what happened since the last call, the state folded up to it; nothing while the store is away."""
        try:
            if not self._pulse.has_moved() and not self._behind:
                return
            self._behind = True  # Until the caller has taken all of it.
            rows = self._orchestrator.store.rows(self.run.id, self.folded.seq)
        except StoreAway as error:
            self.away, self._behind = str(error), True
            return
        self.away = None
        for seq, at_us, body in rows:
            events = decode_events(self.folded.system, body)
            self.folded.add(seq, at_us, events)
            yield seq, at_us, events
        self._behind = False

    def read(self) -> list[tuple[int, Sequence[Event]]]:
        """Return what happened since the last call: time and events of each row."""
        return [(at_us, events) for _, at_us, events in self.rows()]


def make_entries(run: str, row: Row, summary: Summary) -> Iterator[JournalEntry]:
    """Yield the events of a row as plain data."""
    seq, at_us, events = row
    for event in events:
        data = msgspec.to_builtins(event)
        yield JournalEntry(run=run, seq=seq, at=iso(at_us), event=data.pop("event"), data=data, summary=summary)


def follow_run(orchestrator: Orchestrator, run: StoredRun, after: int, *, wait: bool) -> Iterator[JournalEntry]:
    """Yield the events of a run after a row of its journal, and with `wait` those to come until it is over."""
    follower = Follower(orchestrator, run, begin_fold(orchestrator.store, find_system(run.system), run))
    while True:
        for row in follower.rows():
            if row[0] > after:
                yield from make_entries(run.id, row, follower.folded.summary())
        if follower.is_over() or not wait:
            return
        pause()


def pause(seconds: float = LOOK_S) -> None:
    """Wait a moment; Ctrl-C ends it."""
    select.select([], [], [], seconds)
