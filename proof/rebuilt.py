"""A disk rebuilt from the record of a run (`tests/faults/recorder.c`) as a power cut at any moment would have left it.

The model is that of the journaling file systems: changes of names come back in their order, up to some moment that is not
before the last sync of anything; content comes back as it was when that file was synced last, and of what was written to
it later each write by itself may have arrived or not. Files keep their inodes and times, for these are what we know ours by.
"""

from __future__ import annotations

import copy
import os
import random
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

HEAD = struct.Struct("=cQqqII")
SYNC, WRITE, SIZE, OPEN = b"S", b"W", b"T", b"O"
MADE = 1


class Change(msgspec.Struct, frozen=True):
    """One change, as the recorder wrote it down."""

    kind: bytes
    inode: int
    number: int
    time_ns: int
    path: str
    data: bytes

    @property
    def other(self) -> str:
        """Return the second path of a rename or a link."""
        return os.path.normpath(self.data.decode())


class Content:
    """A file: what was in it when it was synced last, and what was done to it since."""

    def __init__(self, inode: int, safe: bytes = b"", time_ns: int = 0) -> None:
        self.inode, self.safe, self.time_ns = inode, safe, time_ns
        self.pending: list[Change] = []

    def now(self) -> bytes:
        """Return what a reader sees."""
        return self._with(self.pending)

    def sync(self) -> None:
        """Take note that all of it is on the disk."""
        self.safe, self.time_ns, self.pending = self.now(), self._time_ns(self.pending), []

    def cut(self, chance: random.Random, arrived: float) -> None:
        """Cut the power: each write since the last sync has arrived with this chance, or never."""
        self.pending = [change for change in self.pending if chance.random() < arrived]
        self.sync()

    def _time_ns(self, changes: list[Change]) -> int:
        return changes[-1].time_ns if changes else self.time_ns

    def _with(self, changes: list[Change]) -> bytes:
        made = bytearray(self.safe)
        for change in changes:
            size = 0 if change.kind == OPEN else change.number
            if change.kind == WRITE:
                made.extend(b"\0" * (size - len(made)))
                made[size : size + len(change.data)] = change.data
            else:
                del made[size:]
                made.extend(b"\0" * (size - len(made)))
        return bytes(made)


class Disk:
    """Names and contents: files by their number, folders as None, links as the text in them."""

    def __init__(self) -> None:
        self.names: dict[str, int | str | None] = {}
        self.contents: dict[int, Content] = {}
        self._by_inode: dict[int, int] = {}

    def read(self, folder: Path) -> None:
        """Take a folder as it is, all of it synced."""
        self.names[str(folder)] = None
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                path = Path(parent, name)
                if path.is_symlink():
                    self.names[str(path)] = str(path.readlink())
                elif path.is_dir():
                    self.names[str(path)] = None
                else:
                    about = path.stat()
                    self.names[str(path)] = self._add(Content(about.st_ino, path.read_bytes(), about.st_mtime_ns))

    def _add(self, content: Content) -> int:
        number = len(self.contents)
        self.contents[number] = content
        self._by_inode[content.inode] = number
        return number

    def change_content(self, change: Change) -> int | None:
        """Do what a change does to a file's content; return the number of one that was made."""
        if change.kind == OPEN and change.number & MADE:
            return self._add(Content(change.inode, time_ns=change.time_ns))
        content = self.contents.get(self._by_inode.get(change.inode, -1))
        if content is not None:
            if change.kind == SYNC:
                content.sync()
            elif change.kind in (WRITE, SIZE, OPEN):
                content.pending.append(change)
        return None

    def change_name(self, change: Change, made: int | None) -> None:
        """Do what a change does to names."""
        match change.kind:
            case b"O" if made is not None:
                self.names[change.path] = made
            case b"M":
                self.names[change.path] = None
            case b"Y":
                self.names[change.path] = change.data.decode()
            case b"U":
                self.names.pop(change.path, None)
            case b"L":
                if change.path in self.names:
                    self.names[change.other] = self.names[change.path]
            case b"R" if change.path in self.names:
                self.names[change.other] = self.names.pop(change.path)
                below = [name for name in self.names if name.startswith(f"{change.path}/")]
                for name in below:
                    self.names[change.other + name[len(change.path) :]] = self.names.pop(name)

    def write(self, folder: Path, kept: Path) -> None:
        """Make a folder what is here, of files that were kept with their inodes."""
        shutil.rmtree(folder)
        for name, what in sorted(self.names.items()):
            path = Path(name)
            if path != folder and folder not in path.parents:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if what is None:
                path.mkdir(exist_ok=True)
            elif isinstance(what, str):
                path.symlink_to(what)
            else:
                content = self.contents[what]
                path.hardlink_to(kept / str(content.inode))
                path.write_bytes(content.now())
                os.utime(path, ns=(content.time_ns, content.time_ns))


def read_changes(log: Path) -> Iterator[Change]:
    """Read what the recorder wrote."""
    rest = log.read_bytes()
    at = 0
    while at < len(rest):
        kind, inode, number, time_ns, length, size = HEAD.unpack_from(rest, at)
        at += HEAD.size
        path, data = rest[at : at + length].decode(), rest[at + length : at + length + size]
        at += length + size
        yield Change(kind, inode, number, time_ns, os.path.normpath(path) if path else "", data)


class Tape:
    """A recorded run: the folders before it, and every change since."""

    def __init__(self, kept: Path, *folders: Path) -> None:
        self._first, self._kept = Disk(), kept
        kept.mkdir()
        for folder in folders:
            self._first.read(folder)
            for path in folder.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    (kept / str(path.stat().st_ino)).hardlink_to(path)
        self.changes: list[Change] = []

    def load(self, log: Path) -> None:
        """Read the changes."""
        self.changes = list(read_changes(log))

    def play(self, count: int, names: int | None = None) -> Disk:
        """Return the disk after so many changes, of which fewer may have changed names."""
        disk = copy.deepcopy(self._first)
        for index, change in enumerate(self.changes[:count]):
            made = disk.change_content(change)
            if names is None or index < names:
                disk.change_name(change, made)
        return disk

    def cut(self, count: int, folder: Path, chance: random.Random, arrived: float, below: Sequence[str] = ("",)) -> None:
        """Make the folder what a power cut after so many changes leaves of it.

        What was written and not synced is lost in files below these places; in all others it had arrived.
        """
        synced = max((index for index in range(count) if self.changes[index].kind == SYNC), default=-1) + 1
        disk = self.play(count, chance.randint(synced, count) if arrived else synced)
        lost = {what for name, what in disk.names.items() if name.startswith(tuple(f"{folder}/{place}" for place in below))}
        for number, content in disk.contents.items():
            content.cut(chance, arrived if number in lost else 1.0)
        disk.write(folder, self._kept)

    def seen(self, count: int, path: Path) -> str:
        """Return what a reader saw in a file after so many changes."""
        disk = self.play(count)
        number = disk.names.get(str(path))
        return disk.contents[number].now().decode() if isinstance(number, int) else ""
