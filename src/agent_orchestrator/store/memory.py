"""A store in memory: for simulations and tests. It keeps every promise but surviving the process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.errors import Conflict, RunExists, Unavailable
from agent_orchestrator.store.outbox import MemoryOutbox
from agent_orchestrator.store.port import (
    EVERY,
    Append,
    Count,
    Day,
    NewRun,
    RateWindow,
    Row,
    Spending,
    StoredRun,
    StoredUsage,
    TailRow,
    Which,
    fits,
    sum_spending,
)
from agent_orchestrator.store.snapshots import MemorySnapshots

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

    remote = False
    accounts = None
    kind = "memory"
    exists = True
    unwritable: Unavailable | None = None

    def __init__(self) -> None:
        self._runs: dict[RunId, _Run] = {}
        self._inbox: dict[str, tuple[str, bytes, bool]] = {}
        self._pruned: list[StoredUsage] = []
        self._windows: dict[tuple[str, str], RateWindow] = {}
        self._reservations: dict[str, tuple[str, int, float, int]] = {}
        self._moved = False
        self._writes = 0
        self._keyed: list[tuple[int, _Run | str, Row]] = []
        """The rows of all journals by their keys; a name stands for a run that was deleted or renamed."""
        self._last = 0
        self.outbox = MemoryOutbox()
        self.snapshots = MemorySnapshots()

    def _keep(self, of: _Run | str, *rows: Row) -> None:
        for row in rows:
            self._last += 1
            self._keyed.append((self._last, of, row))

    def create(self, run: NewRun, first: Append, copied: Sequence[Row] = ()) -> None:
        """Insert a run with its first events, after copied rows."""
        known = self._runs.get(first.run)
        if known is not None:
            raise RunExists(run=first.run, status=known.summary.status)
        self._runs[first.run] = made = _Run(run)
        made.rows += copied
        self._keep(made, *copied)
        self.append([first])

    def append_at_once(self, part: Append) -> Conflict | None:
        """Append a single part."""
        return self.append([part])[0]

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Apply each run's part, or answer it with a Conflict."""
        self._writes += 1
        return [self._append(part) for part in batch]

    def _append(self, part: Append) -> Conflict | None:
        run = self._runs.get(part.run)
        found = len(run.rows) if run else -1
        if run is None or (part.body is not None and found != part.expected_seq):
            return Conflict(run=part.run, expected=part.expected_seq, found=found)
        if part.body is not None:
            run.rows.append((part.expected_seq + 1, part.at_us, part.body))
            self._keep(run, run.rows[-1])
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

    def runs(self, which: Which = EVERY) -> list[StoredRun]:
        """Return some runs, newest first."""
        listed = [self._listed(run, found) for run, found in self._runs.items()]
        chosen = [run for run in reversed(listed) if which.has(run)]
        return sorted(chosen, key=lambda run: -run.context.created_us)[: which.most]

    def count(self) -> Count:
        """Return how many runs there are."""
        return Count(len(self._runs), sum(not run.summary.ended for run in self._runs.values()))

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

    def mark(self) -> object:
        """Return a value that changes with every write."""
        return self._writes

    def newest(self) -> tuple[str, int]:
        """Return the one epoch of memory, and the key of the newest row."""
        return "memory", self._last

    def since(self, key: int, limit: int) -> list[TailRow]:
        """Return the rows of all journals after a key."""
        names = {id(found): run for run, found in self._runs.items()}
        start = bisect_right(self._keyed, key, key=lambda one: one[0])
        return [
            TailRow(number, RunId(of), number, at_us, None)
            if isinstance(of, str)
            else TailRow(number, names[id(of)], seq, at_us, body)
            for number, of, (seq, at_us, body) in self._keyed[start : start + limit]
        ]

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox."""
        if directive in self._inbox:
            return False
        self._writes += 1
        self._inbox[directive] = (run, body, False)
        self._moved = True
        return True

    def posted(self, run: RunId, directive: str) -> bool | None:
        """Return True if a directive was taken, False while it waits, None if there is none."""
        found = self._inbox.get(directive)
        return found[2] if found is not None and found[0] == run else None

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

    def spending(self, since_us: int) -> list[Spending]:
        """Return the ledger since a time, by agent and model."""
        return sum_spending(line for line in self.usage() if line.at_us >= since_us)

    def costs(self, run: RunId | None = None) -> dict[RunId, float]:
        """Return what runs cost, or one of them, where any launch said so."""
        found = {name: [line.usage.cost_usd for line in one.usage.values()] for name, one in self._runs.items()}
        known = {name: [cost for cost in costs if cost is not None] for name, costs in found.items() if run in (None, name)}
        return {name: sum(costs) for name, costs in known.items() if costs}

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
        self.snapshots.drop(run)
        self._runs[to] = found = self._runs.pop(run)
        self._tell_change(run, to)
        found.usage = {key: msgspec.structs.replace(line, run=to) for key, line in found.usage.items()}
        self._inbox = {name: (to if owner == run else owner, body, taken) for name, (owner, body, taken) in self._inbox.items()}

    def delete(self, run: RunId) -> None:
        """Forget a run but what it spent."""
        self.snapshots.drop(run)
        if (found := self._runs.pop(run, None)) is not None:
            self._keyed = [entry for entry in self._keyed if entry[1] is not found]
            self._tell_change(run)
            self._pruned += [msgspec.structs.replace(line, pruned=True) for line in found.usage.values()]
        self._inbox = {name: entry for name, entry in self._inbox.items() if entry[0] != run}
        self._reservations = {effect: mark for effect, mark in self._reservations.items() if mark[0] != run}

    def _tell_change(self, *names: RunId) -> None:
        self._writes += 1
        for name in names:
            self._keep(name, (0, self._keyed[-1][2][1] if self._keyed else 0, b""))

    def keep_reserve_file(self, *, release: bool) -> None:
        """Do nothing: memory needs no reserve."""

    def driving(self) -> AbstractContextManager[None]:
        """Do nothing: there is no schema."""
        return nullcontext()

    def health(self) -> tuple[int, list[str]]:
        """Return that nothing is wrong."""
        return 0, []

    def give_up(self) -> None:
        """Do nothing: it is never away."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
