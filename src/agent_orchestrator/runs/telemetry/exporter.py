"""Reads on in the journals and exports what has ended: in batches, from a durable place, tried again when a collector is down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec

import msgspec

from agent_orchestrator.config.telemetry import Telemetry
from agent_orchestrator.core.events import Ended
from agent_orchestrator.core.launch_events import AgentLaunchFinished
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.errors import Conflict, Unavailable
from agent_orchestrator.runs.tail import Tail, TailPlace
from agent_orchestrator.runs.telemetry.spans import (
    EndedLaunch,
    Ledger,
    SpanFact,
    launch_span,
    read_events,
    read_launches,
    read_ledger,
    read_spans,
)
from agent_orchestrator.store.port import Cursor, Store, StoredRun, TailRow

READER = "otel:"
"""No subscriber can have this name."""
INSTALL = "pip install 'orc-agents[otel]'"
ROWS_AT_ONCE = 500
LOOK_EVERY_S = 1.0
FIRST_DELAY_S, DELAY_MAX_S = 5.0, 300.0


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Spans to export, and the launches of agents that metrics count."""

    spans: Sequence[SpanFact] = ()
    launches: Sequence[EndedLaunch] = ()


Send = Callable[[Batch], str | None]
"""Exports a batch; returns what went wrong."""


def is_installed() -> bool:
    """Tell whether the exporter is there; loading it takes longer than that."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.exporter.otlp.proto.http") is not None


def refuse_missing() -> None:
    """Raise Unavailable where the exporter is not installed."""
    if not is_installed():
        raise Unavailable(detail=f"Telemetry needs the exporter of OpenTelemetry, which is not installed: {INSTALL}.")


def make_sender(telemetry: Telemetry) -> Send:
    """Load the exporter, which takes its time."""
    from agent_orchestrator.runs.telemetry.otlp import Collector

    return Collector(telemetry).send


class SpanExporter:
    """Exports what ends in all runs of a store; only one process at a time may have its lock."""

    def __init__(self, store: Store, clock: Clock, make: Callable[[], Send]) -> None:
        self._store, self._clock, self._make = store, clock, make
        self._sender: Send | None = None
        self._tail: Tail | None = None
        self._kept = 0
        self._due_us, self._failures = 0, 0
        self.problems: list[str] = []

    def register(self) -> None:
        """Give it a place: what ends from now on is exported."""
        if self._store.outbox.cursor(READER) is None:
            self._store.outbox.advance(READER, None, Cursor(self._store.newest()[1]))

    def load(self) -> None:
        """Read how far it has come, whoever went that far."""
        self.register()
        found = self._store.outbox.cursor(READER)
        assert found is not None, "it was registered"
        self._kept = found.key
        self._tail = Tail(self._store, TailPlace(self._store.newest()[0], found.key))

    def turn(self, *, last: bool = False) -> None:
        """Export what has ended since, unless the collector is down and not to be asked yet."""
        now_us = self._clock.now_us()
        if not last and now_us < self._due_us <= now_us + int(DELAY_MAX_S * US):
            return
        self._due_us = now_us + int(LOOK_EVERY_S * US)
        assert self._tail is not None, "it was loaded"
        while rows := self._tail.read(ROWS_AT_ONCE):
            batch = self._collect(rows)
            problem = self._send(batch) if batch.spans else None
            if problem is not None:
                self._fail(problem)
                return
            self._failures, self.problems = 0, []
            if batch.spans or rows[-1].key - self._kept >= ROWS_AT_ONCE or last:
                self._advance(rows[-1].key)

    def _send(self, batch: Batch) -> str | None:
        self._sender = self._sender or self._make()
        return self._sender(batch)

    def _fail(self, problem: str) -> None:
        """Begin again at the kept place, later."""
        self._failures += 1
        self.problems = [problem]
        delay_s = min(DELAY_MAX_S, FIRST_DELAY_S * 2 ** min(self._failures - 1, 10))
        self._due_us = self._clock.now_us() + int(delay_s * US)
        self.load()

    def _advance(self, key: int) -> None:
        if not self._store.outbox.advance(READER, self._kept, Cursor(key)):
            raise Conflict(run=READER, expected=self._kept, found=-1)
        self._kept = key

    def _collect(self, rows: Sequence[TailRow]) -> Batch:
        """Return what has ended with some rows: launches, and whole runs with their units."""
        spans: dict[int, SpanFact] = {}
        launches: list[EndedLaunch] = []
        known: dict[str, tuple[StoredRun, Ledger] | None] = {}
        for row in rows:
            if row.body is None:
                continue
            if row.run not in known:
                run = self._store.run(row.run)
                known[row.run] = (run, read_ledger(self._store, run)) if run is not None else None
            found = known[row.run]
            if found is None or row.at_us < found[0].context.created_us:
                continue
            run, ledger = found
            events = read_events(run, row.body)
            ended = list(read_launches(run, events, ledger))
            launches += [one for one in ended if isinstance(one.event, AgentLaunchFinished)]
            made = [launch_span(run, one) for one in ended]
            if any(isinstance(event, Ended) for event in events):
                made += [one for one in read_spans(self._store, run) if one.closes]
            spans |= {one.id: one for one in made}
        return Batch(spans=list(spans.values()), launches=launches)
