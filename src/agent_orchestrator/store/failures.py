"""SQLite's and the system's errors, mapped once to ours: callers see sentences, never error codes."""

from __future__ import annotations

import errno
from pathlib import Path
from types import TracebackType

import apsw

from agent_orchestrator.errors import DiskFull, StoreCorrupt, StoreLocked, StoreUnwritable, Unavailable

_FULL = {errno.ENOSPC, errno.EDQUOT}


class translated:
    """Maps what goes wrong inside to one of our errors; constraint errors are the caller's own business.

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
            # A failed fsync or write: what is on disk is unknown, so nobody may go on as if it were written.
            return StoreCorrupt(path=path, detail=f"input/output error: {error}")
        case OSError(errno=code) if code in _FULL:
            return DiskFull(path=path)
        case OSError():
            return StoreUnwritable(path=path, detail=error.strerror or str(error))
        case _:
            return None
