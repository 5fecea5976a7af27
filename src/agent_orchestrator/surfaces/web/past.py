"""The past of a run as one compact table: the moves of its units, row by row, so that a page moves through it by itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from agent_orchestrator.core.events import Event, WentBack
from agent_orchestrator.core.system import System
from agent_orchestrator.engine.journal import Folded, begin_fold, decode_events
from agent_orchestrator.store.port import Row, Store, StoredRun


class _Names:
    """Names that are meant by their numbers, and the row at which each appeared."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: list[int] = []

    def number(self, name: str, seq: int) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            self._rows.append(seq)
        return self._numbers[name]

    def since(self, seq: int) -> list[str]:
        return list(self._numbers)[bisect_right(self._rows, seq) :]


class UnitMoves:
    """The moves of a run's units; names stand once, and are meant by their numbers."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._standing: dict[str, str] = {}
        self._units, self._statuses, self._kinds = _Names(), _Names(), _Names()
        self._rows: list[tuple[int, int, list[int]]] = []
        self._moves: list[tuple[int, int, int]] = []
        self._points: list[tuple[str, int]] = []
        self._turns: dict[int, int] = {}
        """The rows at which the run went back, each with the row that it went back to."""

    def add(self, seq: int, at_us: int, events: Sequence[Event], folded: Folded) -> None:
        """Take in the next row, `folded` up to it."""
        self._rows.append((seq, at_us, [self._kinds.number(str(event.__struct_config__.tag), seq) for event in events]))
        if events and isinstance(back := events[0], WentBack):
            self._turns[seq] = back.to
        names = ["start"] if seq == 1 else [name for event in events for name in self._system.points(event)]
        self._points += [(name, seq) for name in names]
        standing = {unit: str(step.status) for unit, step in folded.state.steps.items()}
        if standing == self._standing:
            return
        gone = dict.fromkeys(self._standing.keys() - standing.keys(), "")
        for unit, status in (standing | gone).items():
            if self._standing.get(unit, "") != status:
                self._moves.append((seq, self._units.number(unit, seq), self._statuses.number(status, seq)))
        self._standing = standing

    def since(self, seq: int) -> dict[str, Any]:
        """Return what came after a row: names that are new, rows, and moves; after row 0 that is all."""
        first = bisect_right(self._moves, seq, key=lambda move: move[0])
        names = {"units": self._units.since(seq), "statuses": self._statuses.since(seq), "kinds": self._kinds.since(seq)}
        return {**names, "rows": self._rows[seq:], "moves": self._moves[first:]}

    def facts(self) -> dict[str, Any]:
        """Return all of it, with the points that one can go back to, and the rows that the run went back behind."""
        living = self._living()
        points, seen = [], dict[str, int]()
        for name, seq in self._points:
            if living[seq]:
                seen[name] = seen.get(name, 0) + 1
                points.append((name if seen[name] == 1 else f"{name}#{seen[name]}", seq))
        return {**self.since(0), "points": points, "dead": _stretches(living)}

    def _living(self) -> list[bool]:
        """Tell of each row, from 1 on, whether it counts for the state."""
        living, row = [False] * (len(self._rows) + 1), len(self._rows)
        while row > 0:
            living[row] = True
            row = self._turns.get(row, row - 1)
        return living


def _stretches(living: list[bool]) -> list[tuple[int, int]]:
    dead: list[tuple[int, int]] = []
    for row in range(1, len(living)):
        if not living[row]:
            if dead and dead[-1][1] == row - 1:
                dead[-1] = (dead[-1][0], row)
            else:
                dead.append((row, row))
    return dead


def read_history(store: Store, system: System, run: StoredRun, rows: Sequence[Row]) -> UnitMoves:
    """Read the rows of a journal from its beginning."""
    folded, history = begin_fold(store, system, run), UnitMoves(system)
    for seq, at_us, body in rows:
        events = decode_events(system, body)
        folded.add(seq, at_us, events)
        history.add(seq, at_us, events, folded)
    return history
