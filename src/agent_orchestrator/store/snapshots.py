"""Snapshots as files beside the database, one for each run: a cache, so nothing is synced and anybody may delete them.

What stands in them, and whether it can be believed, is for whoever takes them to know (engine/snapshots.py).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Protocol

from agent_orchestrator.beneath import open_folder, replace_file
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.limits import SNAPSHOT_LIMIT_BYTES

FOLDER = "snapshots"


class SnapshotCache(Protocol):
    """States of long runs, so that they are folded faster: bytes that may be gone, or old, at any time."""

    def read(self, run: RunId) -> bytes | None:
        """Return the newest snapshot of a run; None without one that can be read."""

    def write(self, run: RunId, content: bytes) -> None:
        """Put a snapshot in the place of the last one; raises OSError."""

    def drop(self, run: RunId) -> None:
        """Delete the snapshot of a run."""


class SnapshotFiles:
    """The snapshots of a store on a disk."""

    def __init__(self, root: Path) -> None:
        self._root, self._folder = root, root / FOLDER

    def read(self, run: RunId) -> bytes | None:
        """Return the newest snapshot of a run; None without one that can be read."""
        try:
            return read_bounded(self._folder / run, SNAPSHOT_LIMIT_BYTES, root=self._root)
        except OSError:
            return None

    def write(self, run: RunId, content: bytes) -> None:
        """Put a snapshot in the place of the last one; raises OSError."""
        with open_folder(self._root, self._folder, make=True) as folder:
            replace_file(folder, run, f".{run}.{os.getpid()}{DRAFT}", content)

    def drop(self, run: RunId) -> None:
        """Delete the snapshot of a run."""
        with contextlib.suppress(OSError), open_folder(self._root, self._folder) as folder:
            os.unlink(run, dir_fd=folder)


class MemorySnapshots:
    """The same in memory, for the store that is."""

    def __init__(self) -> None:
        self._kept: dict[RunId, bytes] = {}

    def read(self, run: RunId) -> bytes | None:
        """Return the newest snapshot of a run."""
        return self._kept.get(run)

    def write(self, run: RunId, content: bytes) -> None:
        """Put a snapshot in the place of the last one."""
        self._kept[run] = content

    def drop(self, run: RunId) -> None:
        """Delete the snapshot of a run."""
        self._kept.pop(run, None)
