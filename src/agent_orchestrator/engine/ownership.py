"""Ownership of runs: whoever holds the lock on the run's lock file. No expiry; death releases it.

The file's text (pid and host) is only for people; the lock alone decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
from pathlib import Path

from agent_orchestrator.beneath import open_own
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import RunBusy

LOOK_S = 0.001
LOOKS_MAX = 1000


class Ownership:
    """The lock of one run, held until `release` or the end of the process."""

    epoch = 0

    def __init__(self, folder: Path, run: RunId) -> None:
        self._descriptor = open_own(folder, folder / "runs" / f"{run}.lock")
        if not _lock(self._descriptor):
            owner = _said(self._descriptor)
            os.close(self._descriptor)
            raise RunBusy(run=run, owner=owner)
        os.truncate(self._descriptor, 0)
        self.held = True
        os.pwrite(self._descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)

    def may_act(self) -> bool:
        """Return True: nobody else gets the lock before this process lets go or dies."""
        return self.held

    def release(self) -> None:
        """Lets another process drive the run."""
        self.held = False
        os.close(self._descriptor)


def owner_of(folder: Path, run: RunId) -> str | None:
    """Return who drives the run now, or None; nothing is created."""
    try:
        descriptor = open_own(folder, folder / "runs" / f"{run}.lock", os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock; False while somebody drives the run. Whoever only looks, see `owner_of`, shares it for an instant."""
    for _ in range(LOOKS_MAX):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        select.select([], [], [], LOOK_S)
    return False


def _said(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode("utf-8", "replace") or "another process"
