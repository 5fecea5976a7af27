"""Readiness in a directed acyclic graph, kept incrementally: finishing a unit touches its dependents and nothing else.

Ready units come out in the order of the file, so that a run is the same every time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence


class Dag:
    """Units with needs. A unit is blocked, ready, taken or finished."""

    __slots__ = ("_blockers", "_dependents", "_finished", "_needs", "_order", "_ready", "_taken")

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        self._needs = needs
        self._order = dict(zip(needs, range(len(needs)), strict=True))
        self._dependents: dict[str, list[str]] = {unit: [] for unit in needs}
        self._blockers = dict(zip(needs, map(len, needs.values()), strict=True))
        self._finished: set[str] = set()
        self._taken: set[str] = set()
        self._ready: list[tuple[int, str]] = []
        dependents = self._dependents
        for index, (unit, above) in enumerate(needs.items()):
            if not above:
                self._ready.append((index, unit))
            for parent in above:
                dependents[parent].append(unit)

    @classmethod
    def at(cls, needs: Mapping[str, Sequence[str]], finished: Sequence[str], taken: Sequence[str]) -> Dag:
        """Return the graph in which these units are done and those are being worked on."""
        dag = cls(needs)
        done, busy = dag._finished, dag._taken
        done.update(finished)
        busy.update(taken)
        dependents, blockers = dag._dependents, dag._blockers
        for unit in finished:
            for child in dependents[unit]:
                blockers[child] -= 1
        dag._ready = [(index, unit) for index, unit in enumerate(needs) if not (unit in done or unit in busy or blockers[unit])]
        return dag

    def peek(self) -> str | None:
        """The first ready unit, or None."""
        while self._ready:
            unit = self._ready[0][1]
            if self._is_ready(unit):
                return unit
            heapq.heappop(self._ready)
        return None

    def take(self, unit: str) -> None:
        """The unit is being worked on: no longer ready."""
        self._taken.add(unit)
        if self._ready and self._ready[0][1] == unit:
            heapq.heappop(self._ready)  # A fold looks at no unit before its end: it would find all that ever were ready.

    def finish(self, unit: str) -> None:
        """The unit is done; its dependents may become ready."""
        self._taken.discard(unit)
        if unit in self._finished:
            return
        self._finished.add(unit)
        blockers = self._blockers
        for child in self._dependents[unit]:
            left = blockers[child] = blockers[child] - 1
            if not left:
                self._offer(child)

    def reset(self, units: Iterable[str]) -> None:
        """These units are to be done again, each once its needs are finished."""
        changed = list(units)
        for unit in changed:
            self._taken.discard(unit)
            if unit in self._finished:
                self._finished.discard(unit)
                for child in self._dependents[unit]:
                    self._blockers[child] += 1
        for unit in changed:
            self._offer(unit)

    def downstream(self, unit: str) -> list[str]:
        """The unit and everything that depends on it, in the order of the file."""
        return self._closure(unit, self._dependents)

    def upstream(self, unit: str) -> list[str]:
        """The unit and everything it depends on, in the order of the file."""
        return self._closure(unit, self._needs)

    def standing(self) -> tuple[list[str], list[str]]:
        """Return the units that are done and those that are being worked on, each in the order of the file."""
        place = self._order.__getitem__
        return sorted(self._finished, key=place), sorted(self._taken, key=place)

    @property
    def finished(self) -> int:
        """The number of units that are done."""
        return len(self._finished)

    @property
    def taken(self) -> int:
        """The number of units that are being worked on."""
        return len(self._taken)

    def _is_ready(self, unit: str) -> bool:
        return not self._blockers[unit] and unit not in self._taken and unit not in self._finished

    def _offer(self, unit: str) -> None:
        if self._is_ready(unit):
            heapq.heappush(self._ready, (self._order[unit], unit))

    def _closure(self, unit: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
        seen = {unit}
        stack = [unit]
        while stack:
            for other in edges[stack.pop()]:
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return sorted(seen, key=self._order.__getitem__)
