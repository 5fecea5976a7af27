"""Folders below a root, reached without following any link: an agent may plant one between two of our writes.

Whoever holds the descriptor is where he looked. Where the kernel says what was opened, that is compared with the path; else,
and wherever the two differ, each component is opened from the one before it.
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
_OPENED = "/proc/self/fd"
_TELLS_OPENED = Path(_OPENED).is_dir()
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LinkInTheWay(OSError):
    """A symbolic link stands where a folder of ours should be."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "it leads through a link, and nothing is read or written through one", path)


class NotRegular(OSError):
    """A pipe, a device or a folder stands where a file of ours should be."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


@contextmanager
def open_folder(root: Path, folder: Path, *, make: bool = False) -> Iterator[int]:
    """Hold a folder at or below the root open; `make` makes what is missing. Raise LinkInTheWay for a link below the root."""
    here = _open_directly(str(folder))
    if here is None and make:
        here = _make_directly(root, folder)
    if here is None:
        here = _open_stepwise(root, folder, make=make)
    try:
        yield here
    finally:
        os.close(here)


def _open_directly(folder: str) -> int | None:
    """Open a folder if no link at all is on the way to it, above the root neither; None when that cannot be told."""
    if not _TELLS_OPENED:
        return None
    try:
        here = os.open(folder, _FOLDER)
    except OSError:
        return None
    try:
        if os.readlink(f"{_OPENED}/{here}") == folder:  # noqa: PTH115 - a Path would cost as much as all the rest
            return here
    except OSError:
        pass
    os.close(here)
    return None


def _make_directly(root: Path, folder: Path) -> int | None:
    """Make a folder if the one around it can be opened directly; None when that cannot be told."""
    around = _open_directly(str(folder.parent)) if folder != root else None
    if around is None:
        return None
    try:
        return _enter(around, folder.name, folder, make=True)
    finally:
        os.close(around)


def _open_stepwise(root: Path, folder: Path, *, make: bool) -> int:
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
    except BaseException:
        os.close(here)
        raise
    return here


def reach_folder(root: Path, folder: Path) -> Path:
    """Return a folder at or below the root as the path in which no link is, the root's own included; raise LinkInTheWay."""
    if (here := _open_directly(str(folder))) is not None:
        os.close(here)
        return folder
    with open_folder(root, folder):
        return Path(os.path.realpath(root), folder.relative_to(root))


def open_beneath(root: Path, path: Path, flags: int = os.O_RDONLY, *, make: bool = False) -> int:
    """Open a file below the root; LinkInTheWay for a link at any level below it, its own name included.

    `make` makes the folders on the way; whether the file is made, for its owner to write and all to read, the flags say.
    """
    with open_folder(root, path.parent, make=make) as folder:
        try:
            # NONBLOCK: opening a FIFO would wait for somebody who writes.
            return os.open(path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise LinkInTheWay(str(path)) from None
            raise OSError(error.errno, error.strerror, str(path)) from None


def open_own(root: Path, path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file of ours below the root, by default to lock it; folders are made where the file is.

    LinkInTheWay or NotRegular for anything that somebody put in its place: nothing is written through it, and nobody waits at it.
    """
    try:
        opened = open_beneath(root, path, flags, make=bool(flags & os.O_CREAT))
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR):  # A pipe that nobody reads, a folder.
            raise NotRegular(str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise NotRegular(str(path))
    return opened


def stat_beneath(root: Path, path: Path) -> os.stat_result:
    """Look at a file below the root; LinkInTheWay for a link on the way to it. Its own name may be one, and is not followed."""
    with open_folder(root, path.parent) as folder:
        return os.stat(path.name, dir_fd=folder, follow_symlinks=False)


def move_beneath(root: Path, path: Path, target: Path) -> None:
    """Rename a file below the root; the folders on the way to its new place are made. LinkInTheWay for a link on either way."""
    with open_folder(root, path.parent) as here, open_folder(root, target.parent, make=True) as there:
        os.rename(path.name, target.name, src_dir_fd=here, dst_dir_fd=there)


def remove_beneath(root: Path, path: Path) -> None:
    """Remove a file below the root, a link that has its name, too; LinkInTheWay for a link on the way to it."""
    with contextlib.suppress(FileNotFoundError), open_folder(root, path.parent) as folder:
        os.unlink(path.name, dir_fd=folder)


def list_beneath(root: Path, folder: Path) -> list[str]:
    """Return the names in a folder below the root; none where there is no such folder, or a link leads to it."""
    try:
        with open_folder(root, folder) as held:
            return sorted(os.listdir(held))  # noqa: PTH208 - a descriptor
    except (FileNotFoundError, NotADirectoryError, LinkInTheWay):
        return []


def write_plainly(root: Path, path: Path, content: bytes) -> None:
    """Write a file below a root that nobody reads yet, through no link; the folders on the way are made."""
    with open_folder(root, path.parent, make=True) as folder:
        write_new(folder, path.name, content)


def write_new(folder: int, name: str, content: bytes | Iterable[bytes], mode: int = 0o644, *, sync: bool = False) -> None:
    """Write a file in an open folder anew, of one or many parts: whatever had its name, a link too, is removed first.

    With `sync` its content is on the disk when this returns.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    opened = os.open(name, _NEW_FILE, mode, dir_fd=folder)
    try:
        if isinstance(content, bytes):
            write_all(opened, content)
        else:
            with open(opened, "wb", closefd=False) as file:
                file.writelines(content)
        if sync:
            os.fsync(opened)
    finally:
        os.close(opened)


def write_all(opened: int, content: bytes) -> None:
    """Write all of it, and make no file object: that asks the system four questions, and takes as long as a small file."""
    written = os.write(opened, content) if content else 0
    while written < len(content):
        written += os.write(opened, memoryview(content)[written:])


def replace_file(
    folder: int, name: str, draft: str, content: bytes | Iterable[bytes], mode: int = 0o644, *, sync: bool = False
) -> None:
    """Write a file in an open folder so that a reader sees the old or the new content, never a part of it.

    Until it is whole it has the name of its draft. With `sync` it is on the disk when this returns.
    """
    try:
        write_new(folder, draft, content, mode, sync=sync)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        if sync:
            os.fsync(folder)
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
