"""SQLite's and the system's errors, mapped once to ours: callers see sentences, never error codes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType

import apsw

from agent_orchestrator.errors import DiskFull, StoreCorrupt, StoreFailing, StoreLocked, StoreUnwritable, Unavailable

_FULL = {errno.ENOSPC, errno.EDQUOT}
_ROOM = {
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
    apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_WRITE,
}
"""Errors that a full disk causes too: SQLite cannot even make the shared memory of its log there. A failed sync is not among
them: after it nobody knows what is on disk, whatever the reason was."""


class translated:
    """A context that maps what goes wrong inside to one of our errors; constraint errors are the caller's own business.

    A class, not a generator: it stands on the path of every commit.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        ours = _translate(self._path, error)
        if ours is not None:
            raise ours from error


def _translate(path: Path, error: BaseException) -> Unavailable | None:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(path=path, seconds=10)
        case apsw.FullError():
            return DiskFull(path=path)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(path=path, detail=str(error))
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreUnwritable(path=path, detail=str(error))
        case apsw.IOError():
            extended: int = getattr(error, "extendedresult", 0)  # apsw sets it, and its stubs do not know
            if extended in _ROOM and _is_full(path):
                return DiskFull(path=path)
            return StoreFailing(path=path, detail=f"{error}, SQLite error {extended}")
        case OSError(errno=code) if code in _FULL:
            return DiskFull(path=path)
        case OSError():
            return StoreUnwritable(path=path, detail=error.strerror or str(error))
        case _:
            return None


def _is_full(path: Path) -> bool:
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return False
    return room.f_bavail == 0 or (room.f_files > 0 and room.f_favail == 0)
