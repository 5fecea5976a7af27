"""SQLite's and the system's errors, mapped once to ours: callers see sentences, never error codes."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import apsw

from agent_orchestrator.errors import DiskFull, StoreCorrupt, StoreLocked, StoreUnwritable

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Maps what goes wrong inside to one of our errors; constraint errors are the caller's own business."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLocked(path=path, seconds=10) from error
    except apsw.FullError as error:
        raise DiskFull(path=path) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(path=path, detail=str(error)) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise StoreUnwritable(path=path, detail=str(error)) from error
    except apsw.IOError as error:
        # A failed fsync or write: what is on disk is unknown, so nobody may go on as if it were written.
        raise StoreCorrupt(path=path, detail=f"input/output error: {error}") from error
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(path=path) from error
        raise StoreUnwritable(path=path, detail=error.strerror or str(error)) from error
