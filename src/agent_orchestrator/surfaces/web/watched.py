"""The runs that somebody looks at: folded once, kept up to date, and forgotten when others are looked at instead.

Everything here belongs to the one thread that reads the repository's store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from agent_orchestrator.core.events import WentBack
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.engine.journal import Folded, decode_events, fold
from agent_orchestrator.errors import UnknownRun
from agent_orchestrator.runs.hooks import UnitPlace, hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.web.answers import PageFault
from agent_orchestrator.surfaces.web.past import UnitMoves, read_history

RUNS_KEPT = 16
"""Folded runs of one repository; a run of 2,000 steps takes some megabytes."""
PASTS_KEPT = 4
NEEDS_KEPT = 200

GRAPH_COLUMNS = ("unit", "status", "needs", "attempts", "iteration", "started_us", "ended_us", "error", "title", "stage")


class Moment(NamedTuple):
    """A run as of a row of its journal."""

    run: StoredRun
    folded: Folded
    last_row: int
    """The newest row there is."""

    @property
    def is_past(self) -> bool:
        """True if the run has gone on since."""
        return self.folded.seq != self.last_row


class Finishes(NamedTuple):
    """The ways in which people may finish a run's work."""

    merge: bool
    discard: bool


class WatchedRun:
    """One run, as of the newest row that was read."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        self.folded = orchestrator.fold(run)
        self.run = self._summed_up(run)
        self.history: UnitMoves | None = None
        self._pasts: OrderedDict[int, Folded] = OrderedDict()
        self._changed: dict[str, int] = {}
        """The row at which each unit last became another, for those that did since we looked."""
        self._units = dict(raw_units(self.folded.state))
        self.grown = self.folded.seq
        """The row at which units were last added or taken away."""
        self.turned = 0
        """The row at which the run last went back to an earlier one."""
        self._finish: tuple[tuple[bool, int], Finishes] | None = None

    def catch_up(self, orchestrator: Orchestrator) -> None:
        """Read what was journaled since."""
        rows = orchestrator.store.rows(self.run.id, self.folded.seq)
        for seq, at_us, body in rows:
            events = decode_events(self.folded.system, body)
            self.folded.add(seq, at_us, events)
            if self.history is not None:
                self.history.add(seq, at_us, events, self.folded)
            if events and isinstance(events[0], WentBack):
                self.turned = seq
        if rows:
            self._compare(self.folded.seq)
            self.run = self._summed_up(self.run)

    def _summed_up(self, run: StoredRun) -> StoredRun:
        return msgspec.structs.replace(run, summary=self.folded.summary(), updated_us=self.folded.at_us)

    def _compare(self, seq: int) -> None:
        units = dict(raw_units(self.folded.state))
        if units.keys() != self._units.keys():
            self.grown = seq
        for unit, raw in units.items():
            if self._units.get(unit) != raw:
                self._changed[unit] = seq
        self._units = units

    def changed_since(self, seq: int) -> list[str]:
        """Return the units that became another after a row."""
        return [unit for unit, at in self._changed.items() if at > seq]

    def finishes(self) -> Finishes:
        """Return the ways to finish the work; looked at again when the run ends or has other units: that costs all of them."""
        state = self.folded.state
        mark = (bool(state.lifecycle.ended), len(self._units))
        if self._finish is None or self._finish[0] != mark:
            works = hooks_of(self.run.system).works(self.run, state)
            merge = any(work.branch for work in works)
            self._finish = mark, Finishes(merge, mark[0] and (merge or any(work.begin for work in works)))
        return self._finish[1]

    def now(self) -> Moment:
        """Return the run as of the newest row."""
        return Moment(self.run, self.folded, self.folded.seq)

    def at(self, orchestrator: Orchestrator, row: int) -> Moment:
        """Return the run as of a row; raise a PageFault for one that it has not."""
        last = self.folded.seq
        if row == last:
            return self.now()
        if not 1 <= row < last:
            raise PageFault(404, "unknown", f"Run {self.run.id} has no row {row}; its journal has rows 1 to {last}.")
        past = self._pasts.get(row)
        if past is None:
            past = self._pasts[row] = fold(orchestrator.store, self.folded.system, self.run, row)
            while len(self._pasts) > PASTS_KEPT:
                self._pasts.popitem(last=False)
        run = msgspec.structs.replace(self.run, summary=past.summary(), updated_us=past.at_us)
        return Moment(run, past, last)

    def read_history(self, orchestrator: Orchestrator) -> UnitMoves:
        """Return the moves of all units, read from the journal the first time."""
        if self.history is None:
            rows = orchestrator.store.rows(self.run.id)[: self.folded.seq]
            self.history = read_history(orchestrator.store, self.folded.system, self.run, rows)
        return self.history


class WatchedRuns:
    """The watched runs of one repository, the one that was looked at last at the end."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()
        self._needs: OrderedDict[str, tuple[int, list[dict[str, Any]]]] = OrderedDict()

    def recall(self, run: StoredRun, find: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return what a run asks of people, found once for each summary of it: hundreds may be asking at once."""
        known = self._needs.get(run.id)
        if known is None or known[0] != run.updated_us:
            known = self._needs[run.id] = (run.updated_us, find())
        self._needs.move_to_end(run.id)
        while len(self._needs) > NEEDS_KEPT:
            self._needs.popitem(last=False)
        return known[1]

    def look(self, orchestrator: Orchestrator, run: str) -> WatchedRun:
        """Return a run, up to date; raise UnknownRun."""
        found = orchestrator.known(run)
        if found is None:
            self._runs.pop(run, None)
            raise UnknownRun(run=run, repo=orchestrator.settings.home)
        watched = self._runs.get(run)
        if watched is not None and watched.run.context == found.context:
            watched.catch_up(orchestrator)
        else:  # Another run may have its id by now.
            watched = self._runs[run] = WatchedRun(orchestrator, found)
        self._runs.move_to_end(run)
        while len(self._runs) > RUNS_KEPT:
            self._runs.popitem(last=False)
        return watched

    def forget(self) -> None:
        """Forget all of them: another store stands at its place."""
        self._runs.clear()
        self._needs.clear()


def raw_units(state: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each unit with all that is shown of it in a graph, as cheap to compare as it can be."""
    for unit, step in state.steps.items():
        shown = (step.status, step.attempts, step.iteration_count, step.started_at, step.ended_at, step.last_error)
        yield unit, shown


def _row(unit: str, step: Any, spec: Any, numbers: dict[str, int], place: UnitPlace) -> list[Any]:
    needs = [numbers[one] for one in getattr(spec, "needs", ()) if one in numbers]
    times = [read_us(step.started_at), read_us(step.ended_at)]
    return [unit, str(step.status), needs, step.attempts, step.iteration_count, *times, step.last_error, *place]


def graph_rows(moment: Moment, only: set[str] | None = None) -> list[tuple[int, list[Any]]]:
    """Return the units of a run, or some of them, each with its number in the graph."""
    state = moment.folded.state
    steps, specs, place_of = state.steps, state.specs, hooks_of(moment.run.system).place_of
    numbers = {unit: number for number, unit in enumerate(steps)}
    return [
        (numbers[unit], _row(unit, step, specs.get(unit), numbers, place_of(state, unit)))
        for unit, step in steps.items()
        if only is None or unit in only
    ]


def read_us(text: str | None) -> int | None:
    """Return a time of a state file as a number; None for what is none."""
    try:
        return from_iso(text) if text else None
    except ValueError:
        return None
