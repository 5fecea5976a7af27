"""Keeps two processes from doing the same git work at once, also when one of them is an orphan of a killed engine.

The lock is a kernel lock on a file, inherited by every git that is started while it is held: a git that outlives us goes on
holding it, and whoever repeats our work after a crash waits until it is done.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.git.locate import store_folder

_held = threading.local()


@contextmanager
def alone(where: Path, what: str) -> Iterator[None]:
    """Until the end of the block nobody else does `what` in the repository around `where`."""
    folder = store_folder(where) / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / what, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    before = held()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.locks = (*before, lock)
        yield
    finally:
        _held.locks = before
        os.close(lock)


def held() -> tuple[int, ...]:
    """The locks that this thread holds, for the programs it starts."""
    locks: tuple[int, ...] = getattr(_held, "locks", ())
    return locks
