"""A store in memory: for simulations and tests. It keeps every promise but surviving the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.errors import Conflict, RunExists
from agent_orchestrator.store.port import Append, Day, NewRun, RateWindow, Row, StoredRun, StoredUsage, fits

PRINTED_KEPT = 16


class _Run:
    def __init__(self, run: NewRun) -> None:
        self.new = run
        self.summary: Summary = run.summary
        self.updated_us = run.context.created_us
        self.rows: list[Row] = []
        self.printed: dict[str, list[Identity]] = {}
        self.usage: dict[tuple[str, int], StoredUsage] = {}


class MemoryStore:
    """Dictionaries behind the store's port."""

    def __init__(self) -> None:
        self._runs: dict[RunId, _Run] = {}
        self._inbox: dict[str, tuple[str, bytes, bool]] = {}
        self._pruned: list[StoredUsage] = []
        self._windows: dict[tuple[str, str], RateWindow] = {}
        self._reservations: dict[str, tuple[str, int, float, int]] = {}
        self._moved = False

    def create(self, run: NewRun, first: Append) -> None:
        """Insert a run with its first events."""
        known = self._runs.get(run.context.run)
        if known is not None:
            raise RunExists(run=run.context.run, status=known.summary.status)
        self._runs[run.context.run] = _Run(run)
        self.append([first])

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Apply each run's part, or answer it with a Conflict."""
        return [self._append(part) for part in batch]

    def _append(self, part: Append) -> Conflict | None:
        run = self._runs.get(part.run)
        found = len(run.rows) if run else -1
        if run is None or (part.body is not None and found != part.expected_seq):
            return Conflict(run=part.run, expected=part.expected_seq, found=found)
        if part.body is not None:
            run.rows.append((part.expected_seq + 1, part.at_us, part.body))
        if part.summary is not None:
            run.summary, run.updated_us = part.summary, part.at_us
        for directive in part.taken:
            if directive in self._inbox:
                owner, body, _ = self._inbox[directive]
                self._inbox[directive] = (owner, body, True)
        for row in part.usage:
            entry = StoredUsage(
                run=part.run, unit=row.unit, effect=row.effect, agent=row.agent, at_us=part.at_us, usage=row.usage
            )
            run.usage.setdefault((row.effect, row.offset), entry)
        for window in part.windows:
            known = self._windows.get((window.account, window.name))
            if known is None or known.seen_us <= window.seen_us:
                self._windows[window.account, window.name] = window
        for effect in part.over:
            self._reservations.pop(effect, None)
        if part.release_all:
            self._reservations = {effect: mark for effect, mark in self._reservations.items() if mark[0] != part.run}
        for printed in part.printed:
            kept = run.printed.setdefault(printed.path, [])
            kept.append(printed.identity)
            del kept[:-PRINTED_KEPT]
        return None

    def run(self, run: str) -> StoredRun | None:
        """Return one run by its exact id."""
        found = self._runs.get(RunId(run))
        return None if found is None else self._listed(RunId(run), found)

    def runs(self) -> list[StoredRun]:
        """Return all runs, newest first."""
        listed = [self._listed(run, found) for run, found in self._runs.items()]
        return sorted(reversed(listed), key=lambda run: -run.context.created_us)

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Return a system's runs, oldest first."""
        yield from [self._listed(run, found) for run, found in self._runs.items() if found.new.system == system]

    def _listed(self, run: RunId, found: _Run) -> StoredRun:
        new = found.new
        return StoredRun(
            id=run,
            system=new.system,
            name=new.name,
            context=new.context,
            summary=found.summary,
            updated_us=found.updated_us,
        )

    def spec(self, run: RunId) -> bytes:
        """Return the specification the run was created with."""
        return self._runs[run].new.spec

    def rows(self, run: RunId, after: int = 0) -> list[Row]:
        """Return the journal of a run in order."""
        return self._runs[run].rows[after:]

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox."""
        if directive in self._inbox:
            return False
        self._inbox[directive] = (run, body, False)
        self._moved = True
        return True

    def moved(self) -> bool:
        """Return True if a directive was posted since the last call."""
        moved, self._moved = self._moved, False
        return moved

    def inbox(self, run: RunId) -> list[tuple[str, bytes]]:
        """Return the directives of a run not taken yet."""
        return [(name, body) for name, (owner, body, taken) in self._inbox.items() if owner == run and not taken]

    def printed(self, run: RunId) -> dict[str, list[Identity]]:
        """Return the identities of the run's print-outs by path."""
        return {path: list(kept) for path, kept in self._runs[run].printed.items()}

    def usage(self, run: RunId | None = None) -> list[StoredUsage]:
        """Return the ledger of one run, or of all."""
        if run is not None:
            return list(self._runs[run].usage.values()) if run in self._runs else []
        lines = [*self._pruned, *(line for found in self._runs.values() for line in found.usage.values())]
        return sorted(lines, key=lambda line: (line.at_us, line.effect))

    def windows(self) -> list[RateWindow]:
        """Return the rate limits that were hit."""
        return [window for _, window in sorted(self._windows.items())]

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Return what all runs consumed and reserved since a time."""
        rows = [row.usage for row in self.usage() if row.at_us >= since_us]
        marks = [mark[2:] for mark in self._reservations.values() if mark[1] >= since_us and mark[0] != but_for]
        return Day(
            cost_usd=sum(usage.cost_usd or 0.0 for usage in rows),
            tokens=sum(usage.tokens or 0 for usage in rows),
            wall_s=sum(usage.wall_s or 0.0 for usage in rows),
            reserved_usd=sum(cost_usd for cost_usd, _ in marks),
            reserved_tokens=sum(tokens for _, tokens in marks),
        )

    def reserved(self, run: RunId) -> tuple[float, int]:
        """Return what is reserved for launches of one run."""
        marks = [mark for mark in self._reservations.values() if mark[0] == run]
        return sum(mark[2] for mark in marks), sum(mark[3] for mark in marks)

    def reserve(
        self, run: RunId, effect: EffectId, amount: tuple[float, int], limit: tuple[float, int], since_us: int, at_us: int
    ) -> bool:
        """Reserve something, if it fits."""
        before = self._reservations.pop(effect, None)
        day = self.day(since_us)
        if fits(day, amount, limit):
            self._reservations[effect] = (run, at_us, *amount)
            return True
        if before is not None:
            self._reservations[effect] = before
        return False

    def rename(self, run: RunId, to: RunId) -> None:
        """Give a run another id."""
        self._runs[to] = found = self._runs.pop(run)
        found.usage = {key: msgspec.structs.replace(line, run=to) for key, line in found.usage.items()}
        self._inbox = {name: (to if owner == run else owner, body, taken) for name, (owner, body, taken) in self._inbox.items()}

    def delete(self, run: RunId) -> None:
        """Forget a run but what it spent."""
        if (found := self._runs.pop(run, None)) is not None:
            self._pruned += [msgspec.structs.replace(line, pruned=True) for line in found.usage.values()]
        self._inbox = {name: entry for name, entry in self._inbox.items() if entry[0] != run}
        self._reservations = {effect: mark for effect, mark in self._reservations.items() if mark[0] != run}

    def keep_reserve_file(self, *, release: bool) -> None:
        """Do nothing: memory needs no reserve."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
