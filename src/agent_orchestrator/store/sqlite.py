"""The store on SQLite: WAL, synchronous=FULL, one transaction and one fsync for all runs of a batch.

Every write is BEGIN IMMEDIATE (a deferred one fails at once when it must upgrade). Readers fetch everything and end
their statement before anybody renders. Nothing else may ever open the database files: closing a plain descriptor
on them would drop SQLite's locks. Rules and reasons are in docs/durability.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import Conflict, RunExists, StoreNewer, StoreVanished, Unavailable
from agent_orchestrator.store.failures import translated
from agent_orchestrator.store.filesystem import make_folder, refuse_network_filesystem
from agent_orchestrator.store.ledger import Ledger
from agent_orchestrator.store.port import Append, Day, NewRun, RateWindow, Row, StoredRun, StoredUsage, fits
from agent_orchestrator.store.queries import migrations, queries

BUSY_TIMEOUT_MS = 10_000
TURNSTILE_WAIT_S = 0.05
PRINTED_KEPT = 16
MIGRATION_TRIES = 50
PAGE = 1_000
"""Runs read at once by whoever goes through all of them."""
RESERVE_BYTES = 1024 * 1024

_encode = msgspec.json.encode
_summary = msgspec.json.Decoder(Summary).decode
_context = msgspec.json.Decoder(Context).decode
_identity = msgspec.json.Decoder(Identity).decode


class SqliteStore:
    """One connection to `<folder>/orc.db`."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.path = folder / "orc.db"
        self._folder = folder
        self._sql = queries()
        self._version = len(migrations())
        self._name = str(self.path)
        self._keys: dict[str, int] = {}
        self._seqs: dict[str, int] = {}
        """The last sequence number this process wrote, by run; the unique index tells when another process wrote more."""
        with translated(self.path):
            if create:
                make_folder(folder, holds=self.path)
            refuse_network_filesystem(folder)
            flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            self._db = apsw.Connection(str(self.path), flags=flags)
            try:
                self._ledger = Ledger(self._db, self._sql)
                self._configure()
                self._migrate()
                self._inode = os.stat(self.path).st_ino
                self._data_version = self._pragma("data_version")
                self._turnstile = os.open(folder / "turnstile", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except BaseException:
                self._db.close()
                raise

    def _configure(self) -> None:
        db = self._db
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "full")
        db.pragma("fullfsync", True)

    def _pragma(self, name: str) -> int:
        value = self._db.pragma(name)
        assert isinstance(value, int)
        return value

    def _migrate(self) -> None:
        known = len(migrations())
        found = self._pragma("user_version")
        if found > known:
            raise StoreNewer(path=self.path, found=found, known=known)
        if found == known:
            return
        lock = os.open(self._folder / "drivers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if self._is_alone(lock, known):
                with self._writing():
                    for version in range(self._pragma("user_version"), known):
                        self._db.execute(migrations()[version])
                        self._db.pragma("user_version", version + 1)
        finally:
            os.close(lock)

    def _is_alone(self, lock: int, known: int) -> bool:
        """Lock out processes that drive runs by the old schema; return False if another process has changed it meanwhile."""
        for _ in range(MIGRATION_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._pragma("user_version") == known:
                    return False  # Two began at once, and the other one was faster.
                select.select([], [], [], 0.01)
            else:
                return True
        detail = f"The store {self.path} needs a new schema while another orc drives runs; wait for it or pause it"
        raise Unavailable(detail=detail)

    def driving(self) -> int:
        """Return a descriptor to hold for as long as this process drives runs: it keeps migrations away."""
        lock = os.open(self._folder / "drivers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        self._seqs.clear()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def create(self, run: NewRun, first: Append) -> None:
        """Insert a run with its first events."""
        context = run.context
        with translated(self.path):
            try:
                with self._writing():
                    values = (
                        context.run,
                        run.system,
                        run.name,
                        _encode(context),
                        run.spec,
                        _encode(run.summary),
                        context.created_us,
                    )
                    self._db.execute(self._sql["insert_run"], values)
                    conflict = self._append(first)
                    assert conflict is None, conflict
            except apsw.ConstraintError as error:
                known = self.run(context.run)
                raise RunExists(run=context.run, status=known.summary.status if known else "unknown") from error
        self._check_inode()

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Commit a batch in one transaction."""
        self._let_others_in()
        with translated(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                version = self._db.execute("PRAGMA user_version").get
                if version != self._version:
                    raise StoreNewer(path=self.path, found=version, known=self._version)
                answers = [self._append(part) for part in batch]
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            self._check_inode()
        return answers

    def _append(self, part: Append) -> Conflict | None:
        key = self._key(part.run)
        if key is None:
            return Conflict(run=part.run, expected=part.expected_seq, found=-1)
        execute, sql = self._db.execute, self._sql
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
        for directive in part.taken:
            execute(sql["take_directive"], (directive, part.at_us))
        for row in part.usage:
            execute(
                sql["insert_usage"],
                (row.effect, row.offset, key, row.unit, row.agent, part.at_us, _encode(row.usage)),
            )
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

    def _let_others_in(self) -> None:
        """Wait a moment at the turnstile, which is held by anybody who posts a directive.

        Without it a process that commits without pause keeps a directive out for seconds: SQLite's busy handler
        sleeps through the short gaps between transactions. The wait is bounded, so a frozen poster stops nobody.
        """
        for _ in range(int(TURNSTILE_WAIT_S / 0.001)):
            try:
                fcntl.flock(self._turnstile, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                select.select([], [], [], 0.001)
                continue
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
            return

    def _check_inode(self) -> None:
        """Raise StoreVanished for a database that `git clean` unlinked: it would go on acknowledging commits into nothing."""
        try:
            inode = os.stat(self._name).st_ino
        except FileNotFoundError:
            inode = -1
        if inode != self._inode:
            raise StoreVanished(path=self.path, rescue=self._rescue())

    def _rescue(self) -> Path:
        folder = next(parent for parent in self._folder.parents if parent.is_dir())
        copy = folder / f"orc-rescued-{os.getpid()}.db"
        with contextlib.suppress(FileNotFoundError):
            copy.unlink()
        self._db.execute("VACUUM INTO ?", (str(copy),))
        return copy

    def _fetch(self, name: str, *values: apsw.SQLiteValue) -> list[tuple[apsw.SQLiteValue, ...]]:
        with translated(self.path):
            return self._db.execute(self._sql[name], values).fetchall()

    def run(self, run: str) -> StoredRun | None:
        """Return one run by its exact id."""
        rows = self._fetch("select_run", run)
        return _listed(rows[0]) if rows else None

    def runs(self) -> list[StoredRun]:
        """Return all runs, newest first."""
        return [_listed(row) for row in self._fetch("select_runs")]

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Return a system's runs, oldest first, a page at a time."""
        last: object = 0
        while rows := self._fetch("select_page", last, system, PAGE):
            for row in rows:
                yield _listed(row[1:])
            last = rows[-1][0]

    def spec(self, run: RunId) -> bytes:
        """Return the specification the run was created with."""
        return self._fetch("select_spec", run)[0][0]  # type: ignore[return-value]

    def rows(self, run: RunId, after: int = 0) -> list[Row]:
        """Return the journal of a run in order."""
        return self._fetch("select_rows", self._key(run), after)  # type: ignore[return-value]

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox, ahead of any busy engine."""
        with translated(self.path):
            fcntl.flock(self._turnstile, fcntl.LOCK_EX)
            try:
                with self._writing():
                    self._db.execute(self._sql["insert_directive"], (directive, self._key(run), at_us, body))
                    self._data_version = -1  # An engine on this connection looks as well.
                    return self._db.changes() == 1
            finally:
                fcntl.flock(self._turnstile, fcntl.LOCK_UN)

    def moved(self) -> bool:
        """Return True if another connection committed, or a directive was posted, since the last call."""
        with translated(self.path):
            seen, self._data_version = self._data_version, self._pragma("data_version")
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
        with translated(self.path):
            key = self._key(run) if run is not None else None
            return [] if run is not None and key is None else self._ledger.lines(key)

    def windows(self) -> list[RateWindow]:
        """Return the rate limits that were hit."""
        return [
            RateWindow(account=account, name=name, resets_us=resets_us, seen_us=seen_us, strikes=strikes)  # type: ignore[arg-type]
            for account, name, resets_us, seen_us, strikes in self._fetch("select_windows")
        ]

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Return what all runs consumed and reserved since a time."""
        with translated(self.path):
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
        with translated(self.path), self._writing():
            if not fits(self._day(since_us, 0, effect), amount, limit):
                return False
            self._db.execute(self._sql["upsert_reservation"], (effect, self._key(run), at_us, *amount))
            return True

    def rename(self, run: RunId, to: RunId) -> None:
        """Give a run another id."""
        with translated(self.path), self._writing():
            self._db.execute(self._sql["rename_run"], (run, to))
        self._forget(run)

    def delete(self, run: RunId) -> None:
        """Forget a run and everything of it but what it spent."""
        with translated(self.path), self._writing():
            for name in ("insert_pruned", "delete_events", "delete_inbox", "delete_reservations", "delete_printed", "delete_run"):
                self._db.execute(self._sql[name], (self._key(run),))
        self._forget(run)

    def _forget(self, run: RunId) -> None:
        self._keys.pop(run, None)
        self._seqs.pop(run, None)

    def keep_reserve_file(self, *, release: bool) -> None:
        """Keep or give up a file of a megabyte."""
        reserve = self._folder / "reserve"
        with contextlib.suppress(OSError):
            if release:
                reserve.unlink(missing_ok=True)
            elif not reserve.exists():
                reserve.write_bytes(bytes(RESERVE_BYTES))

    def health(self) -> tuple[int, list[str]]:
        """Return the schema version and what SQLite finds wrong with the file; slow on a large one."""
        with translated(self.path):
            found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check").fetchall()]
            return self._pragma("user_version"), [text for text in found if text != "ok"]

    def close(self) -> None:
        """End the connection."""
        os.close(self._turnstile)
        self._db.close()


def _listed(row: tuple[apsw.SQLiteValue, ...]) -> StoredRun:
    run, system, name, context, summary, updated_us = row
    return StoredRun(
        id=run,  # type: ignore[arg-type]
        system=system,  # type: ignore[arg-type]
        name=name,  # type: ignore[arg-type]
        context=_context(context),  # type: ignore[arg-type]
        summary=_summary(summary),  # type: ignore[arg-type]
        updated_us=updated_us,  # type: ignore[arg-type]
    )
