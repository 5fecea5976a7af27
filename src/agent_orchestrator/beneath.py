"""Folders below a root, reached without following any link: an agent may plant one between two of our writes.

Each component is opened from the one before it, every time; whoever holds the descriptor is where he looked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LinkInTheWay(OSError):
    """A symbolic link stands where a folder of ours should be."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "it leads through a link, and nothing is read or written through one", path)


@contextmanager
def open_folder(root: Path, folder: Path, *, make: bool = False) -> Iterator[int]:
    """Hold a folder at or below the root open; `make` makes what is missing. Raise LinkInTheWay for a link below the root."""
    if make:
        with contextlib.suppress(FileExistsError):
            root.mkdir(parents=True)
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        reached = root
        for name in folder.relative_to(root).parts:
            reached /= name
            inner = _enter(here, name, reached, make=make)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def open_beneath(root: Path, path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file below the root; LinkInTheWay for a link at any level below it, its own name included."""
    with open_folder(root, path.parent) as folder:
        try:
            # NONBLOCK: opening a FIFO would wait for somebody who writes.
            return os.open(path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise LinkInTheWay(str(path)) from None
            raise OSError(error.errno, error.strerror, str(path)) from None


def stat_beneath(root: Path, path: Path) -> os.stat_result:
    """Look at a file below the root; LinkInTheWay for a link on the way to it. Its own name may be one, and is not followed."""
    with open_folder(root, path.parent) as folder:
        return os.stat(path.name, dir_fd=folder, follow_symlinks=False)


def write_new(folder: int, name: str, content: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file in an open folder anew, of one or many parts: whatever had its name, a link too, is removed first."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    with open(name, "wb", opener=lambda path, _: os.open(path, _NEW_FILE, mode, dir_fd=folder)) as file:
        file.writelines((content,) if isinstance(content, bytes) else content)


def replace_file(folder: int, name: str, draft: str, content: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file in an open folder so that a reader sees the old or the new content, never a part of it.

    Until it is whole it has the name of its draft.
    """
    try:
        write_new(folder, draft, content, mode)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _enter(here: int, name: str, reached: Path, *, make: bool) -> int:
    if name == "..":
        raise LinkInTheWay(str(reached))
    for _ in range(2):
        try:
            return os.open(name, _FOLDER, dir_fd=here)
        except FileNotFoundError:
            if not make:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(reached)) from None
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=here)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and stat.S_ISLNK(os.lstat(name, dir_fd=here).st_mode):
                raise LinkInTheWay(str(reached)) from None
            raise OSError(error.errno, error.strerror, str(reached)) from None
    raise LinkInTheWay(str(reached))
