"""A store in memory: for simulations and tests. It keeps every promise but surviving the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.errors import Conflict, RunExists
from agent_orchestrator.store.port import Append, NewRun, Row, StoredRun, StoredUsage

PRINTED_KEPT = 16


class _Run:
    def __init__(self, run: NewRun) -> None:
        self.new = run
        self.summary: Summary = run.summary
        self.updated_us = run.context.created_us
        self.rows: list[Row] = []
        self.printed: dict[str, list[Identity]] = {}


class MemoryStore:
    """Dictionaries behind the store's port."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._inbox: dict[str, tuple[str, bytes, bool]] = {}
        self._usage: dict[tuple[str, int], StoredUsage] = {}
        self._moved = False

    def create(self, run: NewRun, first: Append) -> None:
        """Inserts a run with its first events."""
        known = self._runs.get(run.context.run)
        if known is not None:
            raise RunExists(run=run.context.run, status=known.summary.status)
        self._runs[run.context.run] = _Run(run)
        self.append([first])

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Applies each run's part, or answers it with a Conflict."""
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
            self._usage.setdefault((row.effect, row.offset), entry)
        for printed in part.printed:
            kept = run.printed.setdefault(printed.path, [])
            kept.append(printed.identity)
            del kept[:-PRINTED_KEPT]
        return None

    def run(self, run: str) -> StoredRun | None:
        """One run by its exact id."""
        found = self._runs.get(run)
        return None if found is None else self._listed(run, found)

    def runs(self) -> list[StoredRun]:
        """All runs, newest first."""
        listed = [self._listed(run, found) for run, found in self._runs.items()]
        return sorted(reversed(listed), key=lambda run: -run.context.created_us)

    def scan(self, system: str) -> Iterator[StoredRun]:
        """A system's runs, oldest first."""
        yield from [self._listed(run, found) for run, found in self._runs.items() if found.new.system == system]

    def _listed(self, run: str, found: _Run) -> StoredRun:
        new = found.new
        return StoredRun(
            id=run,
            system=new.system,
            name=new.name,
            context=new.context,
            summary=found.summary,
            updated_us=found.updated_us,
        )

    def spec(self, run: str) -> bytes:
        """The specification the run was created with."""
        return self._runs[run].new.spec

    def rows(self, run: str, after: int = 0) -> list[Row]:
        """The journal of a run in order."""
        return self._runs[run].rows[after:]

    def post(self, run: str, directive: str, body: bytes, at_us: int) -> bool:
        """Puts a directive into the inbox."""
        if directive in self._inbox:
            return False
        self._inbox[directive] = (run, body, False)
        self._moved = True
        return True

    def moved(self) -> bool:
        """Whether a directive was posted since the last call."""
        moved, self._moved = self._moved, False
        return moved

    def inbox(self, run: str) -> list[tuple[str, bytes]]:
        """Directives of a run not taken yet."""
        return [(name, body) for name, (owner, body, taken) in self._inbox.items() if owner == run and not taken]

    def printed(self, run: str) -> dict[str, list[Identity]]:
        """Identities of the run's print-outs by path."""
        return {path: list(kept) for path, kept in self._runs[run].printed.items()}

    def usage(self, run: str | None = None) -> list[StoredUsage]:
        """The ledger of one run, or of all."""
        return [row for row in self._usage.values() if run is None or row.run == run]

    def rename(self, run: str, to: str) -> None:
        """Gives a run another id."""
        self._runs[to] = self._runs.pop(run)
        self._inbox = {name: (to if owner == run else owner, body, taken) for name, (owner, body, taken) in self._inbox.items()}

    def delete(self, run: str) -> None:
        """Forgets a run."""
        self._runs.pop(run, None)
        self._inbox = {name: entry for name, entry in self._inbox.items() if entry[0] != run}
        self._usage = {key: row for key, row in self._usage.items() if row.run != run}

    def reserve(self, *, release: bool) -> None:
        """Memory needs no reserve."""

    def close(self) -> None:
        """Nothing to close."""
