"""Looking and creating go together: two processes must not both take the last place."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.beneath import open_own
from agent_orchestrator.store.failures import translated


@contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """Holds the repository's lock of that name; whoever comes second waits."""
    with translated(folder / "orc.db"):
        lock = open_own(folder, folder / f"{what}.starting")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
