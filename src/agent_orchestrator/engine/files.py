"""Small file operations the engine needs done carefully: bounded reads, atomic copies, moves that keep everything."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from agent_orchestrator.core.files import DRAFT


class TooLarge(Exception):
    """A file has more bytes than its limit allows."""


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file, refused unread when it is larger than the limit. Never blocks on a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > limit:
            raise TooLarge(f"it has {status.st_size} bytes, the limit is {limit}")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def write_plainly(path: Path, content: bytes) -> None:
    """Writes a file nobody reads yet, in three system calls: it stands between one agent's end and the next one's start."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that a reader sees the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{DRAFT}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def move_aside(path: Path, suffix: str) -> Path:
    """Renames a file to `<name>.<suffix>`, numbered so that nothing is overwritten."""
    target = path.with_name(f"{path.name}.{suffix}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.{suffix}-{number}")
    path.rename(target)
    return target
