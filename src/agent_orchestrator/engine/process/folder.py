"""A launch's directory: `lock` says who lives; what it holds, `exit.<code>` and `void` say what became of it.

The lock file has two lines once the launch began: its birth, then the shim's pid. Whatever is concluded from the marks
is concluded while holding the lock. Nothing here is fsynced: a power cut ends every launch anyway, and after one a
launch is never started again. The folder is opened anew each time, through no link: one that a link leads to is not there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import LinkInTheWay, open_folder, replace_file
from agent_orchestrator.bounded import TooLarge, open_launched, read_bounded, store_of
from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.errors import says_shortage

LOCK, VOID, OUT, ERR = "lock", "void", "out", "err"
STOPPED = "stopped"
"""Left before a program is stopped, until its end is settled: nobody may want it any more, but what it consumed counts."""
LOST = "lost"
"""Left by whoever found that a program had vanished without an exit code: from then on it is known to be dead."""
HUNG = "hung"
"""Left before a program is stopped that had written its result and did not exit."""

_EXIT = "exit."
_EXIT_CHARS_MAX = len("exit.255")
_BIRTH = msgspec.json.Encoder()
_LINES_BYTES_MAX = 4096
_OUR_WORDS = ("orc: ", "bwrap: ")
"""The shim and the walls begin their messages so."""


class Birth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lock file's first line: everything about a launch that is known before its process exists."""

    nonce: str
    boot: str
    started_us: int
    started_s: float
    """The monotonic clock at the start; it goes on counting through an engine's death, not through a reboot."""
    cgroup: str = ""
    """The folder of its cgroup, where it has one."""


class Marks(NamedTuple):
    """The marks that a launch left behind."""

    exits: tuple[tuple[int, int], ...] = ()
    """Exit codes, and the microsecond at which each was written, 0 if that is not known; one, but for what others made."""
    begun: bool = False
    void: bool = False
    hung: bool = False

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The exit codes, in order."""
        return tuple(code for code, _ in self.exits)

    @property
    def exit_code(self) -> int | None:
        """The exit code, where there is no doubt about it."""
        return self.exits[0][0] if len(self.exits) == 1 else None

    @property
    def ended(self) -> bool:
        """Say whether it may never be started (again)."""
        return self.begun or self.void or bool(self.exits)


class Taken(NamedTuple):
    """A launch whose lock we hold, and the marks that were there when we got it."""

    lock: int
    marks: Marks


@contextmanager
def _held(folder: Path) -> Iterator[int]:
    """Hold the folder open; FileNotFoundError where a link leads to it, too."""
    try:
        with open_folder(store_of(folder), folder) as held:
            yield held
    except LinkInTheWay as error:
        raise FileNotFoundError(errno.ENOENT, error.strerror, error.filename) from None


def find_link(folder: Path) -> str | None:
    """Return the link that leads to a launch's folder, or that stands for its lock; None without one."""
    try:
        with open_folder(store_of(folder), folder) as held:
            return f"{folder}/{LOCK}" if _is_link(LOCK, held) else None
    except LinkInTheWay as error:
        return str(error.filename)
    except OSError:
        return None


def take_lock(folder: Path, *, create: bool = False) -> int | None:
    """A descriptor that holds the launch's lock; None while somebody else does. FileNotFoundError without a lock file."""
    with _held(folder) as held:
        return take_lock_in(held, create=create)


def take_lock_in(held: int, *, create: bool = False) -> int | None:
    """Take the lock of a launch whose folder is held open; None while somebody else has it."""
    lock = _open_lock(held, create=create)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    return lock


def take(folder: Path, *, create: bool = False) -> Taken | None:
    """Take the lock of a launch and read its marks; None while somebody else has it. FileNotFoundError without a lock file.

    `create` makes folder and lock where they are missing; a link on the way to them is raised then.
    """
    with open_folder(store_of(folder), folder, make=True) if create else _held(folder) as held:
        lock = take_lock_in(held, create=create)
        if lock is None:
            return None
        try:
            return Taken(lock, _marks_in(held))
        except BaseException:
            os.close(lock)
            raise


def _open_lock(held: int, *, create: bool) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(LOCK, flags | (os.O_CREAT if create else 0), 0o644, dir_fd=held)
    except OSError as error:
        if not isinstance(error, FileNotFoundError) and not (error.errno == errno.ELOOP and not create):
            raise
    # On a full disk the shim renames the lock itself to the exit mark; what the agent left behind still holds it.
    marks = [name for name in _exit_marks(held) if not _is_link(name, held)]
    if not marks:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), LOCK)
    return os.open(max(marks, key=lambda name: _size(name, held)), flags, dir_fd=held)


def is_locked(folder: Path) -> bool:
    """Say whether anything of the launch lives."""
    try:
        lock = take_lock(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if lock is None:
        return True
    os.close(lock)
    return False


def read_marks(folder: Path) -> Marks:
    """The marks as they stand; call it while holding the lock if anything is concluded from what is missing."""
    try:
        with _held(folder) as held:
            return _marks_in(held)
    except FileNotFoundError:
        return Marks()


def _marks_in(held: int) -> Marks:
    names = os.listdir(held)
    begun = LOCK in names and _size(LOCK, held) > 0
    exits = sorted((code, _changed_us(name, held)) for name in names if (code := _exit_code(name)) is not None)
    return Marks(exits=tuple(exits), begun=begun, void=VOID in names, hung=HUNG in names)


def _changed_us(name: str, held: int) -> int:
    try:
        return _changed_ns(name, held) // 1000
    except FileNotFoundError:  # One that lives may take its own marks away.
        return 0


def _exit_code(name: str) -> int | None:
    code = name.removeprefix(_EXIT)
    return int(code) if code.isdecimal() and len(code) < len(name) <= _EXIT_CHARS_MAX else None


def _exit_marks(held: int) -> list[str]:
    return sorted(name for name in os.listdir(held) if _exit_code(name) is not None)


def _size(name: str, held: int) -> int:
    return os.stat(name, dir_fd=held, follow_symlinks=False).st_size


def _changed_ns(name: str, held: int) -> int:
    return os.stat(name, dir_fd=held, follow_symlinks=False).st_ctime_ns


def _is_link(name: str, held: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def leave_mark(folder: Path, name: str) -> None:
    """Leave an empty file in a launch's folder; what lies under its name, a link too, is a mark already."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with _held(folder) as held, contextlib.suppress(FileExistsError):
        os.close(os.open(name, flags, 0o644, dir_fd=held))


def remove_mark(folder: Path, name: str) -> None:
    """Take a mark away, where there is one."""
    with contextlib.suppress(FileNotFoundError), _held(folder) as held:
        os.unlink(name, dir_fd=held)


def has(folder: Path, name: str) -> bool:
    """Say whether a launch's folder has a file of that name."""
    try:
        with _held(folder) as held:
            os.stat(name, dir_fd=held, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def write_birth(lock: int, birth: Birth) -> None:
    """Marks the launch as begun, through the descriptor that holds its lock. A power cut may tear it, nothing else."""
    os.write(lock, _BIRTH.encode(birth) + b"\n")


def keep_birth(folder: Path, birth: Birth) -> None:
    """Write down the birth of an ended launch that took its lock, or all of its folder, away: it is known to have lived."""
    if read_birth(folder) is None:
        with open_folder(store_of(folder), folder, make=True) as held:
            replace_file(held, LOCK, f".{LOCK}{DRAFT}", _BIRTH.encode(birth) + b"\n")


def holds_birth(lock: int) -> bool:
    """Say whether the birth of a launch stands in its lock, through the descriptor that holds it."""
    return _read_birth(os.pread(lock, _LINES_BYTES_MAX, 0).partition(b"\n")[0]) is not None


def unwrite_birth(lock: int) -> None:
    """The launch did not begin after all."""
    os.ftruncate(lock, 0)
    os.lseek(lock, 0, os.SEEK_SET)


def find_unstarted(folder: Path, code: int | None) -> str:
    """Say why a program was not started, where the shim's exit code, by the kernel's word, and its files prove it; else "".

    The shim's child makes `err` before it becomes the program. What it says there itself, or the wall around the program, is
    all that was written when the program could not be executed.
    """
    if code is None or code <= 0:
        return ""
    try:
        said = read_bounded(folder / ERR, _LINES_BYTES_MAX, root=store_of(folder)).decode("utf-8", "replace").strip()
        with _held(folder) as held:
            if _size(OUT, held) > 0:
                return ""
    except FileNotFoundError:
        made = has(folder, ERR) or has(folder, OUT) or not has(folder, ".")
        return "" if made else "no process could be made"
    except (TooLarge, LinkInTheWay):
        return ""
    ours = said.startswith(_OUR_WORDS) and "\n" not in said and says_shortage(said)
    return said if ours else ""


def reopen(folder: Path, lock: int) -> None:
    """Makes a launch whose program was never started new again, through the descriptor that holds its lock."""
    unwrite_birth(lock)
    with _held(folder) as held:
        for mark in _exit_marks(held):
            if LOCK in os.listdir(held):
                os.unlink(mark, dir_fd=held)
            else:  # on a full disk the lock became the exit mark
                os.rename(mark, LOCK, src_dir_fd=held, dst_dir_fd=held)
    for name in (OUT, ERR):
        remove_mark(folder, name)


def read_birth(folder: Path) -> Birth | None:
    """Return who was started, or None when that is not (any more) known: never begun, or torn by a power cut."""
    return _read_birth(_lines(folder)[0])


def _read_birth(line: bytes) -> Birth | None:
    try:
        return typed.decode(line, Birth)
    except msgspec.DecodeError:
        return None


def read_pid(folder: Path) -> int | None:
    """The shim's process id as the shim wrote it; None until it did."""
    text = _lines(folder)[1]
    return int(text) if text.isdigit() and len(text) < 10 else None


def _lines(folder: Path) -> tuple[bytes, bytes]:
    try:
        with _held(folder) as held:
            marks = _exit_marks(held)
    except OSError:
        return b"", b""
    for name in (LOCK, *marks):  # on a full disk the lock became the exit mark
        try:
            with open_launched(folder / name) as file:
                birth, _, rest = file.read(_LINES_BYTES_MAX).partition(b"\n")
        except OSError:
            continue
        if birth:
            return birth, rest.partition(b"\n")[0]
    return b"", b""


def last_sign_ns(folder: Path, *, same_boot: bool) -> int:
    """Until when a launch may have lived: our mark of its end, and for ever without one.

    One that a restart of the machine ended without a mark lived until the last thing that it wrote.
    """
    if is_locked(folder):
        return sys.maxsize
    try:
        with _held(folder) as held:
            there = os.listdir(held)
            names = [name for name in there if _exit_code(name) is not None or name in (LOST, VOID)]
            if names or not same_boot:
                return max((_changed_ns(name, held) for name in names or {LOCK, OUT, ERR} & {*there}), default=0)
    except FileNotFoundError:
        pass
    return sys.maxsize


def output_bytes(files: tuple[str, str]) -> int:
    """Return how much both streams hold by now."""
    total = 0
    for file in files:
        try:
            total += os.lstat(file).st_size
        except OSError:
            continue
    return total
