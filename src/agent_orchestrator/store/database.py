"""Opening the database: for writing, or where that cannot work, for reading what the disk holds.

On a full disk SQLite cannot even make the shared memory of its log, and on a read-only file system not the log's lock. What
was committed is there all the same, so it is read once into memory: the answer to `orc status` must not depend on free space.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from agent_orchestrator.beneath import LinkInTheWay, NotRegular, open_own, write_plainly
from agent_orchestrator.errors import DiskFull, StoreFailing, StoreNewer, StoreUnwritable, Unavailable
from agent_orchestrator.store.failures import translated
from agent_orchestrator.store.filesystem import make_folder, refuse_network_filesystem
from agent_orchestrator.store.queries import migrations, newest_version

BUSY_TIMEOUT_MS = 10_000
MIGRATION_TRIES = 50
QUEUE_S = 60.0
QUEUE_LOOK_S = 0.005
TURNSTILE_WAIT_S = 0.05
LOG = "-wal"
RESERVE_BYTES = 1024 * 1024


class Opened(NamedTuple):
    """A connection, and why it only reads where it does."""

    db: apsw.Connection
    unwritable: Unavailable | None


def open_database(path: Path, *, create: bool) -> Opened:
    """Open the store at a path, with the schema of this version.

    Where it stands and cannot be written, the connection is to a copy in memory of all that was committed.
    """
    stood = os.path.exists(path)  # Path.exists raises where the folder may not be read
    try:
        with translated(path):
            if create:
                make_folder(path.parent, holds=path)
            refuse_network_filesystem(path.parent)
            return _open_writable(path, create=create)
    except (DiskFull, StoreUnwritable, StoreFailing) as error:
        if not stood or (copy := _read_only(path)) is None:
            raise
        return Opened(copy, error)


def _open_writable(path: Path, *, create: bool) -> Opened:
    with translated(path):
        db = _connect(path, apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0))
    with _closed_on_error(db), translated(path, db):
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        if db.readonly("main"):  # SQLite tries that by itself, and would say so only at the first write
            raise apsw.ReadOnlyError("it may only be read")
        if read_pragma(db, "user_version") != newest_version() or db.pragma("journal_mode") != "wal":
            _set_up(path, db)
        db.pragma("synchronous", "full")
        db.pragma("fullfsync", True)
    return Opened(db, None)


def _connect(path: Path, flags: int) -> apsw.Connection:
    """Connect to a database that is a file and no link; its folder may be reached through one.

    It is not opened to look: closing it would take away the locks that another connection of this process has on it.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise LinkInTheWay(str(path))
        if not stat.S_ISREG(mode):
            raise NotRegular(str(path))
    return apsw.Connection(os.path.join(os.path.realpath(path.parent), path.name), flags=flags | apsw.SQLITE_OPEN_NOFOLLOW)


def _set_up(path: Path, db: apsw.Connection) -> None:
    """Make the log and the schema, one process after the other: SQLite would refuse most of those that begin at once."""
    lock = open_own(path.parent, path.parent / "turnstile")
    try:
        with queue_up(lock):
            db.pragma("journal_mode", "wal")
            _migrate(path, db)
    finally:
        os.close(lock)


@contextlib.contextmanager
def queue_up(lock: int) -> Iterator[None]:
    """Wait for those before us, who hold a lock for a moment each; for so long only that a frozen one stops nobody."""
    for _ in range(int(QUEUE_S / QUEUE_LOOK_S)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            select.select([], [], [], QUEUE_LOOK_S)
        else:
            break
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


def let_others_in(lock: int) -> None:
    """Wait a moment at the turnstile, which is held by anybody who posts a directive or starts a run.

    Without it a process that commits without pause keeps them out for seconds: SQLite's busy handler
    sleeps through the short gaps between transactions. The wait is bounded, so a frozen poster stops nobody.
    """
    for _ in range(int(TURNSTILE_WAIT_S / 0.001)):
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            select.select([], [], [], 0.001)
            continue
        fcntl.flock(lock, fcntl.LOCK_UN)
        return


@contextlib.contextmanager
def _closed_on_error(db: apsw.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _read_only(path: Path) -> apsw.Connection | None:
    """Return a copy in memory; None where not even that can be had, or another schema would have to be made of it."""
    for read in (_read_alone, _read_copied):
        memory = apsw.Connection(":memory:")
        try:
            read(path, memory)
            if read_pragma(memory, "user_version") != newest_version():
                break
            memory.pragma("query_only", True)
        except (apsw.Error, OSError):
            memory.close()
            continue
        return memory
    return None


def _read_alone(path: Path, memory: apsw.Connection) -> None:
    """Read with the database to ourselves: the index of the log then lies in our own memory, and needs no file.

    While another process has it open this is refused as busy; but then there is shared memory, and no need for it.
    """
    db = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("locking_mode", "exclusive")
        _copy(db, memory)
    finally:
        db.close()


def _read_copied(path: Path, memory: apsw.Connection) -> None:
    """Read a copy of the files, made where temporary files go: nobody can change what lies on a read-only file system."""
    import shutil  # costly, and hardly ever needed
    import tempfile

    with tempfile.TemporaryDirectory(prefix="orc-") as folder:
        for name in (path.name, path.name + LOG):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(path.with_name(name), Path(folder, name), follow_symlinks=False)
        db = apsw.Connection(str(Path(folder, path.name)), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _copy(db, memory)
        finally:
            db.close()


def _copy(db: apsw.Connection, memory: apsw.Connection) -> None:
    with memory.backup("main", db, "main") as backup:
        backup.step(-1)


def integrity_faults(db: apsw.Connection) -> list[str]:
    """List what SQLite finds wrong with the pages of a database; slow on a large one."""
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check").fetchall()]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [str(error)]
    return [text for text in found if text != "ok"]


def keep_reserve(file: Path, *, release: bool) -> None:
    """Keep a file that takes a little room, or give the room up."""
    with contextlib.suppress(OSError):
        if release:
            file.unlink(missing_ok=True)
        elif not file.is_file() or file.is_symlink():
            write_plainly(file.parent, file, bytes(RESERVE_BYTES))


def rescue_into_file(db: apsw.Connection, folder: Path) -> Path:
    """Copy a database that has no file any more to the nearest folder that is there; returns the copy."""
    copy = next(parent for parent in folder.parents if parent.is_dir()) / f"orc-rescued-{os.getpid()}.db"
    with contextlib.suppress(FileNotFoundError):
        copy.unlink()
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))  # for its owner alone
    db.execute("VACUUM INTO ?", (str(copy),))
    return copy


def examine(path: Path) -> list[str]:
    """List what is wrong with the pages of a store that cannot be opened as one."""
    with translated(path):
        db = _connect(path, apsw.SQLITE_OPEN_READONLY)
    with translated(path, db):
        try:
            return integrity_faults(db)
        finally:
            db.close()


def read_pragma(db: apsw.Connection, name: str) -> int:
    """Return a setting of the database that is a number."""
    value = db.pragma(name)
    assert isinstance(value, int)
    return value


def _migrate(path: Path, db: apsw.Connection) -> None:
    known = newest_version()
    found = read_pragma(db, "user_version")
    if found > known:
        raise StoreNewer(path=path, found=found, known=known)
    if found == known:
        return
    lock = open_own(path.parent, path.parent / "drivers.lock")
    try:
        if not _is_alone(path, db, lock):
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            for version in range(read_pragma(db, "user_version"), known):
                db.execute(migrations()[version])
                db.pragma("user_version", version + 1)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    finally:
        os.close(lock)


@contextlib.contextmanager
def keep_schema(folder: Path) -> Iterator[None]:
    """Keep the schema of a store from being changed meanwhile, by a lock that many can share."""
    lock = open_own(folder, folder / "drivers.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _is_alone(path: Path, db: apsw.Connection, lock: int) -> bool:
    """Lock out processes that drive runs by the old schema; return False if another process has changed it meanwhile."""
    for _ in range(MIGRATION_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if read_pragma(db, "user_version") == newest_version():
                return False  # Two began at once, and the other one was faster.
            select.select([], [], [], 0.01)
        else:
            return True
    detail = f"The store {path} needs a new schema while another orc is running; wait for it or pause it"
    raise Unavailable(detail=detail)
