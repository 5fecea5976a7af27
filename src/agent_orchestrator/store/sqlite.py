"""The store on SQLite: WAL, synchronous=FULL, one transaction and one fsync for all runs of a batch.

Every write is BEGIN IMMEDIATE (a deferred one fails at once when it must upgrade). Readers fetch everything and end
their statement before anybody renders. Nothing else may ever open the database files: closing a plain descriptor
on them would drop SQLite's locks. Rules and reasons are in docs/durability.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import open_own
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.errors import Conflict, RunExists, StoreNewer, StoreVanished
from agent_orchestrator.store.database import (
    integrity_faults,
    keep_reserve,
    keep_schema,
    let_others_in,
    open_database,
    queue_up,
    read_pragma,
    rescue_into_file,
)
from agent_orchestrator.store.failures import translated
from agent_orchestrator.store.ledger import Ledger
from agent_orchestrator.store.lists import list_statement
from agent_orchestrator.store.outbox import SqliteOutbox
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
)
from agent_orchestrator.store.queries import newest_version, queries
from agent_orchestrator.store.rows import read_run
from agent_orchestrator.store.snapshots import SnapshotFiles

PRINTED_KEPT = 16
PAGE = 1_000
"""Runs read at once by whoever goes through all of them."""
DELETES = (
    *("insert_pruned", "delete_events", "delete_inbox", "delete_reservations"),
    *("delete_printed", "delete_spec", "delete_run"),
)

_encode = msgspec.json.encode
_identity = typed.decoder(Identity)


class SqliteStore:
    """One connection to `<folder>/orc.db`."""

    remote = False
    accounts = None
    kind = f"SQLite {apsw.sqlite_lib_version()}"

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.path, self._folder, self.snapshots = folder / "orc.db", folder, SnapshotFiles(folder)
        self._sql, self._version, self._name = queries(), newest_version(), str(self.path)
        self._keys: dict[str, int] = {}
        self._seqs: dict[str, int] = {}
        """The last sequence number this process wrote, by run; the unique index tells when another process wrote more."""
        self._writes, self._turnstile, self._checked = 0, -1, -1
        self._db, self.unwritable = open_database(self.path, create=create)
        """Why this connection only reads: it answers from what the disk holds, and refuses to write with this error."""
        self._guarded = translated(self.path, self._db)
        self._execute = self._db.cursor().execute  # For what returns no rows: a cursor each costs a quarter of an insert.
        try:
            self._ledger = Ledger(self._db, self._sql)
            self.outbox = SqliteOutbox(self._db, self._sql, self._fetch, self._outbox_writing)
            with self._guarded:
                self._inode = os.stat(self.path).st_ino
                self._data_version = read_pragma(self._db, "data_version")
                if self.unwritable is None:
                    self._turnstile = open_own(folder, folder / "turnstile")
        except BaseException:
            self._db.close()
            raise

    def _refuse_unwritable(self) -> None:
        if self.unwritable is not None:
            raise self.unwritable

    @property
    def exists(self) -> bool:
        """True while the file is there."""
        return self._find_inode() >= 0

    def driving(self) -> contextlib.AbstractContextManager[None]:
        """Keep migrations away for as long as this process drives runs."""
        self._refuse_unwritable()
        return keep_schema(self._folder)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._refuse_unwritable()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
            self._writes += 1
        except BaseException:
            self._roll_back()
            raise

    @contextlib.contextmanager
    def _outbox_writing(self) -> Iterator[None]:
        with self._guarded, self._writing():
            yield

    def _roll_back(self) -> None:
        self._seqs.clear()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def create(self, run: NewRun, first: Append, copied: Sequence[Row] = ()) -> None:
        """Insert a run with its first events, after copied rows."""
        context, summary = run.context, run.summary
        about = (first.run, run.system, run.name, _encode(context), _encode(summary), context.created_us, summary.ended)
        self._refuse_unwritable()
        with self._guarded:
            try:
                with queue_up(self._turnstile), self._writing():
                    self._db.execute(self._sql["insert_run"], about)
                    self._db.execute(self._sql["insert_spec"], (run.spec,))
                    self._db.executemany(self._sql["insert_event"], ((self._key(first.run), *row) for row in copied))
                    conflict = self._append(first)
                    assert conflict is None, conflict
            except apsw.ConstraintError as error:
                known = self.run(first.run)
                raise RunExists(run=first.run, status=known.summary.status if known else "unknown") from error
        self._check_inode()

    def append_at_once(self, part: Append) -> Conflict | None:
        """Append a single part."""
        return self.append([part])[0]

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Commit a batch in one transaction."""
        self._refuse_unwritable()
        let_others_in(self._turnstile)
        with self._guarded:
            self._execute("BEGIN IMMEDIATE")
            try:
                # SQLite counts commits: after none but its own, what the last append has read still holds.
                known = self._db.data_version() == self._checked
                if not known and (version := read_pragma(self._db, "user_version")) != self._version:
                    raise StoreNewer(path=self.path, found=version, known=self._version)
                answers = [self._append(part) for part in batch]
                self._execute("COMMIT")
                self._writes += 1
                self._checked = self._db.data_version()
            except BaseException:
                self._roll_back()
                raise
            self._check_inode()
        return answers

    def _append(self, part: Append) -> Conflict | None:
        key = self._key(part.run)
        if key is None:
            return Conflict(run=part.run, expected=part.expected_seq, found=-1)
        execute, sql = self._execute, self._sql
        if part.body is not None:
            # A part that does not fit is answered before it wrote anything: that is its savepoint.
            if self._seqs.get(part.run) != part.expected_seq and (found := self._last_seq(key)) != part.expected_seq:
                return Conflict(run=part.run, expected=part.expected_seq, found=found)
            try:
                execute(sql["insert_event"], (key, part.expected_seq + 1, part.at_us, part.body))
            except apsw.ConstraintError:
                return Conflict(run=part.run, expected=part.expected_seq, found=self._last_seq(key))
            self._seqs[part.run] = part.expected_seq + 1
        if part.summary is not None:
            execute(sql["update_summary"], (key, _encode(part.summary), part.at_us))
            execute(sql["update_ended"], (key, part.summary.ended))
        for directive in part.taken:
            execute(sql["take_directive"], (directive, part.at_us))
        for row in part.usage:
            said = (row.effect, row.offset, key, row.unit, row.agent, part.at_us, _encode(row.usage))
            execute(sql["insert_usage"], said)
        for window in part.windows:
            execute(sql["upsert_window"], (window.account, window.name, window.resets_us, window.seen_us, window.strikes))
        for effect in part.over:
            execute(sql["delete_reservation"], (effect,))
        if part.release_all:
            execute(sql["delete_reservations"], (key,))
        for printed in part.printed:
            execute(sql["insert_printed"], (key, printed.path, _encode(printed.identity)))
            execute(sql["forget_printed"], (key, printed.path, PRINTED_KEPT))
        return None

    def _last_seq(self, key: int) -> int:
        found = self._db.execute(self._sql["last_seq"], (key,)).get
        return found if isinstance(found, int) else 0

    def _key(self, run: str) -> int | None:
        key = self._keys.get(run)
        if key is None:
            row = self._db.execute(self._sql["run_key"], (run,)).fetchone()
            if row is None:
                return None
            key = self._keys[run] = row[0]
        return key

    def _check_inode(self) -> None:
        """Raise StoreVanished for a database that `git clean` unlinked: it would go on acknowledging commits into nothing."""
        if self._find_inode() != self._inode:
            raise StoreVanished(path=self.path, rescue=rescue_into_file(self._db, self._folder))

    def _find_inode(self) -> int:
        try:
            return os.stat(self._name).st_ino
        except FileNotFoundError:
            return -1

    def _fetch(self, name: str, *values: apsw.SQLiteValue) -> list[tuple[apsw.SQLiteValue, ...]]:
        with self._guarded:
            return self._db.execute(self._sql[name], values).fetchall()

    def run(self, run: str) -> StoredRun | None:
        """Return one run by its exact id."""
        rows = self._fetch("select_run", run)
        return read_run(rows[0]) if rows else None

    def runs(self, which: Which = EVERY) -> list[StoredRun]:
        """Return some runs, newest first."""
        statement, values = list_statement(self._sql["select_runs"], which)
        with self._guarded:
            return [read_run(row) for row in self._db.execute(statement, values).fetchall()]

    def count(self) -> Count:
        """Return how many runs there are."""
        total, unfinished = self._fetch("count_runs")[0]
        return Count(total, unfinished)  # type: ignore[arg-type]

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Return a system's runs, oldest first, a page at a time."""
        last: object = 0
        while rows := self._fetch("select_page", last, system, PAGE):
            for row in rows:
                yield read_run(row[1:])
            last = rows[-1][0]

    def spec(self, run: RunId) -> bytes:
        """Return the specification the run was created with."""
        return self._fetch("select_spec", self._key(run))[0][0]  # type: ignore[return-value]

    def rows(self, run: RunId, after: int = 0) -> list[Row]:
        """Return the journal of a run in order."""
        return self._fetch("select_rows", self._key(run), after)  # type: ignore[return-value]

    def mark(self) -> object:
        """Return a value that changes with every commit, by whomever, and when another file takes this one's place."""
        with self._guarded:
            return read_pragma(self._db, "data_version"), self._writes, self._find_inode()

    def newest(self) -> tuple[str, int]:
        """Return the store's epoch and the key of its newest row."""
        return self._fetch("select_newest")[0]  # type: ignore[return-value]

    def since(self, key: int, limit: int) -> list[TailRow]:
        """Return the rows of all journals after a key."""
        return [TailRow(*row) for row in self._fetch("select_since", key, limit)]  # type: ignore[arg-type]

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox, ahead of any busy engine."""
        self._refuse_unwritable()
        with self._guarded, queue_up(self._turnstile), self._writing():
            self._db.execute(self._sql["insert_directive"], (directive, self._key(run), at_us, body))
            self._data_version = -1  # An engine on this connection looks as well.
            return self._db.changes() == 1

    def posted(self, run: RunId, directive: str) -> bool | None:
        """Return True if a directive was taken, False while it waits, None if there is none."""
        found = self._fetch("select_posted", directive, self._key(run))
        return bool(found[0][0]) if found else None

    def moved(self) -> bool:
        """Return True if another connection committed, or a directive was posted, since the last call."""
        with self._guarded:
            seen, self._data_version = self._data_version, read_pragma(self._db, "data_version")
        return seen != self._data_version

    def inbox(self, run: RunId) -> list[tuple[str, bytes]]:
        """Return the directives of a run not taken yet."""
        return self._fetch("select_inbox", self._key(run))  # type: ignore[return-value]

    def printed(self, run: RunId) -> dict[str, list[Identity]]:
        """Return the identities of the run's print-outs by path."""
        found: dict[str, list[Identity]] = {}
        for path, body in self._fetch("select_printed", self._key(run)):
            found.setdefault(str(path), []).append(_identity(body))  # type: ignore[arg-type]
        return found

    def usage(self, run: RunId | None = None) -> list[StoredUsage]:
        """Return the ledger of one run, or of all."""
        with self._guarded:
            key = self._key(run) if run is not None else None
            return [] if run is not None and key is None else self._ledger.lines(key)

    def spending(self, since_us: int) -> list[Spending]:
        """Return the ledger since a time, by agent and model."""
        rows: Any = self._fetch("select_spending", since_us)
        return [
            Spending(agent=agent, model=model, launches=launches, cost_usd=cost_usd, tokens=tokens, unknown=launches - known)
            for agent, model, launches, cost_usd, known, tokens in rows
        ]

    def costs(self, run: RunId | None = None) -> dict[RunId, float]:
        """Return what runs cost, or one of them, where any launch said so."""
        rows: Any = self._fetch("select_costs", (self._key(run) or 0) if run is not None else None)
        return dict(rows)

    def windows(self) -> list[RateWindow]:
        """Return the rate limits that were hit."""
        return [
            RateWindow(account=account, name=name, resets_us=resets_us, seen_us=seen_us, strikes=strikes)  # type: ignore[arg-type]
            for account, name, resets_us, seen_us, strikes in self._fetch("select_windows")
        ]

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Return what all runs consumed and reserved since a time."""
        with self._guarded:
            return self._day(since_us, self._key(but_for) or 0, "")

    def _day(self, since_us: int, run: int, effect: str) -> Day:
        spent = self._ledger.since(since_us)
        marked: Any = self._db.execute(self._sql["select_reserved"], (since_us, run, effect)).fetchall()[0]
        return Day(cost_usd=spent[0], tokens=spent[1], wall_s=spent[2], reserved_usd=marked[0], reserved_tokens=marked[1])

    def reserved(self, run: RunId) -> tuple[float, int]:
        """Return what is reserved for launches of one run."""
        return self._fetch("select_run_reserved", self._key(run))[0]  # type: ignore[return-value]

    def reserve(
        self, run: RunId, effect: EffectId, amount: tuple[float, int], limit: tuple[float, int], since_us: int, at_us: int
    ) -> bool:
        """Reserve something, if it fits."""
        with self._guarded, self._writing():
            if not fits(self._day(since_us, 0, effect), amount, limit):
                return False
            self._db.execute(self._sql["upsert_reservation"], (effect, self._key(run), at_us, *amount))
            return True

    def rename(self, run: RunId, to: RunId) -> None:
        """Give a run another id."""
        with self._guarded, self._writing():
            self._db.execute(self._sql["rename_run"], (run, to))
            self._db.executemany(self._sql["insert_change"], ((run,), (to,)))
        self._forget(run)

    def delete(self, run: RunId) -> None:
        """Forget a run and everything of it but what it spent."""
        with self._guarded, self._writing():
            self._db.execute(self._sql["insert_change"], (run,))
            for name in DELETES:
                self._db.execute(self._sql[name], (self._key(run),))
        self._forget(run)

    def _forget(self, run: RunId) -> None:
        self._keys.pop(run, None)
        self._seqs.pop(run, None)
        self.snapshots.drop(run)

    def keep_reserve_file(self, *, release: bool) -> None:
        """Keep or give up a file of a megabyte."""
        keep_reserve(self._folder / "reserve", release=release)

    def health(self) -> tuple[int, list[str]]:
        """Return the schema version and what SQLite finds wrong with the file; slow on a large one."""
        with self._guarded:
            return read_pragma(self._db, "user_version"), integrity_faults(self._db)

    def give_up(self) -> None:
        """Do nothing: it is never away."""

    def close(self) -> None:
        """End the connection."""
        if self._turnstile >= 0:
            os.close(self._turnstile)
        self._db.close()
