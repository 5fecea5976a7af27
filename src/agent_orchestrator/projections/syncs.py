"""Many new files on the disk for little more than one: all are on their way there before the first is waited for.

Waited for one by one, each pays for a commit of the file system's journal of its own; begun together, they share it.
"""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Self

OPEN_MAX = 64
"""Files that are held open until they are synced."""


class Syncs:
    """A context in which new files are written; when it is left without an error, what was added is on the disk."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def add(self, descriptor: int) -> None:
        """Begin to write a file out, which the caller may close; it is waited for later, or now if no more may be open."""
        try:
            mine = os.dup(descriptor)
        except OSError:
            os.fsync(descriptor)
            return
        self._open.append(mine)
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(mine, 0, 0, os.POSIX_FADV_DONTNEED)
        if len(self._open) >= OPEN_MAX:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._finish()
        self._close()

    def _finish(self) -> None:
        try:
            for descriptor in self._open:
                os.fsync(descriptor)
        finally:
            self._close()

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())
