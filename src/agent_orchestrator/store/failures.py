"""SQLite's and the system's errors, mapped once to ours: callers see sentences, never error codes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType

import apsw

from agent_orchestrator.beneath import LinkInTheWay, NotRegular
from agent_orchestrator.errors import DiskFull, StoreCorrupt, StoreFailing, StoreLocked, StoreUnwritable, Unavailable

_FULL = {errno.ENOSPC, errno.EDQUOT}
_SYNC = {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}
"""A failed sync is a failing disk, whatever the reason was: nobody knows any more what is on it."""
_WAYS = {
    errno.EACCES: "check the permissions of its folder",
    errno.EPERM: "check the permissions of its folder",
    errno.EROFS: "its file system is mounted read-only",
    errno.EFBIG: "files may not grow that large here: see `ulimit -f`",
    errno.EMFILE: "this process has too many open files: see `ulimit -n`",
    errno.ENFILE: "the machine has too many open files; try again later",
    errno.ELOOP: "its path must not lead through symbolic links that go in circles",
}
"""Reasons of the system for which a store cannot be written though its disk is sound, and what to do about them."""


class translated:
    """A context that maps what goes wrong inside to one of our errors; constraint errors are the caller's own business.

    The connection, where there is one, knows the system's own error behind SQLite's. A class, not a generator: it stands on
    the path of every commit, and one serves them all.
    """

    __slots__ = ("_db", "_path")

    def __init__(self, path: Path, db: apsw.Connection | None = None) -> None:
        self._path, self._db = path, db

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        ours = _translate(self._path, error, self._db)
        if ours is not None:
            raise ours from error


def _translate(path: Path, error: BaseException, db: apsw.Connection | None) -> Unavailable | None:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(path=path, seconds=10)
        case apsw.FullError():
            return DiskFull(path=path)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(path=path, detail=str(error))
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return _unwritable(path, str(error), _reason(path, db))
        case apsw.IOError():
            return _failed(path, error, db)
        case OSError(errno=code) if code in _FULL:
            return DiskFull(path=path)
        case LinkInTheWay() | NotRegular():
            way = f"remove {error.filename}, which is none of ours"
            return StoreUnwritable(path=path, detail=error.strerror, way=way)
        case OSError():
            return _unwritable(path, error.strerror or str(error), error.errno)
        case _:
            return None


def _failed(path: Path, error: apsw.IOError, db: apsw.Connection | None) -> Unavailable:
    extended: int = getattr(error, "extendedresult", 0)  # apsw sets it, and its stubs do not know
    reason = _reason(path, db)
    if extended not in _SYNC:
        if reason in _FULL:
            return DiskFull(path=path)
        if reason in _WAYS:
            return _unwritable(path, str(error), reason)
    said = f", {os.strerror(reason)}" if reason else ""
    return StoreFailing(path=path, detail=f"{error}, SQLite error {extended}{said}")


def _unwritable(path: Path, detail: str, reason: int | None) -> Unavailable:
    if reason in _FULL:
        return DiskFull(path=path)
    return StoreUnwritable(path=path, detail=detail, way=_WAYS.get(reason or 0, "check its folder and its permissions"))


def _reason(path: Path, db: apsw.Connection | None) -> int:
    """Find the system's error; asked of the file system where SQLite has not even a connection to remember it."""
    if db is not None and (known := db.system_errno):
        return known
    try:
        room = os.statvfs(path.parent)
    except OSError as error:
        return error.errno or 0
    if room.f_flag & os.ST_RDONLY:
        return errno.EROFS
    if room.f_bavail == 0 or (room.f_files > 0 and room.f_favail == 0):
        return errno.ENOSPC
    return 0
