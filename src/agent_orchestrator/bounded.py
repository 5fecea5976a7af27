"""Reading a file that an agent or a person may have put there: at most so many bytes, and never one that has no end.

Below a root that is named no link is followed: in a folder that an agent may write to, one could lead anywhere.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from agent_orchestrator.beneath import NotRegular, open_beneath


class TooLarge(OSError):
    """A file has more bytes than its limit allows."""

    def __init__(self, size: int, limit: int, path: str) -> None:
        super().__init__(errno.EFBIG, f"it has {size:,} bytes, the limit is {limit:,}", path)
        self.size = size

    def __str__(self) -> str:
        return str(self.strerror)


def store_of(launch: Path) -> Path:
    """Return the store's folder from that of a launch, which is `<store>/launches/<run>/<launch>`: below it no link is ours."""
    return launch.parents[2]


def open_launched(path: Path) -> BinaryIO:
    """Open a regular file of a launch to be read in parts, through no link; OSError for anything else."""
    descriptor = open_beneath(store_of(path.parent), path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(str(path))
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, limit: int, *, root: Path | None = None) -> bytes:
    """Read a regular file; OSError, and nothing read, when it is something else or larger than the limit.

    With a root, a link at any level below it is something else, too.
    """
    # The descriptor is what is judged, not the name.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags) if root is None else open_beneath(root, path)
    try:
        return read_descriptor(descriptor, limit, str(path))
    finally:
        os.close(descriptor)


def read_descriptor(descriptor: int, limit: int, path: str) -> bytes:
    """Read what an open descriptor has, by the same rules; `path` is its name in an error."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(path)
    if status.st_size > limit:
        raise TooLarge(status.st_size, limit, path)
    parts: list[bytes] = []
    size = 0
    # It may grow under us; one byte more than the limit is enough to see it.
    while size <= limit and (part := os.read(descriptor, min(limit + 1 - size, max(status.st_size - size, 0) + 1))):
        parts.append(part)
        size += len(part)
    if size > limit:
        raise TooLarge(size, limit, path)
    return b"".join(parts)


def read_bounded_text(path: Path, limit: int, encoding: str = "utf-8") -> str:
    """Read a text file by the same rules, every end of line as a newline."""
    return read_bounded(path, limit).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
