"""A launch's directory: `lock` says who lives; what it holds, `exit.<code>` and `void` say what became of it.

The lock file has two lines once the launch began: its birth, then the shim's pid. Whatever is concluded from the marks
is concluded while holding the lock. Nothing here is fsynced: a power cut ends every launch anyway, and after one a
launch is never started again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_orchestrator.bounded import TooLarge, open_regular, read_bounded
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


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """The lock file's first line: everything about a launch that is known before its process exists."""

    nonce: str
    boot: str
    started_us: int
    started_s: float
    """The monotonic clock at the start; it goes on counting through an engine's death, not through a reboot."""


class Marks(NamedTuple):
    """The marks that a launch left behind."""

    exit_codes: tuple[int, ...] = ()
    """One, unless somebody else than the shim made one."""
    begun: bool = False
    void: bool = False
    hung: bool = False

    @property
    def exit_code(self) -> int | None:
        """The exit code, where there is no doubt about it."""
        return self.exit_codes[0] if len(self.exit_codes) == 1 else None

    @property
    def ended(self) -> bool:
        """Say whether it may never be started (again)."""
        return self.begun or self.void or bool(self.exit_codes)


def take_lock(folder: Path, *, create: bool = False) -> int | None:
    """A descriptor that holds the launch's lock; None while somebody else does. FileNotFoundError without a lock file."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock = os.open(f"{folder}/{LOCK}", flags | (os.O_CREAT if create else 0), 0o644)
    except FileNotFoundError:
        # On a full disk the shim renames the lock itself to the exit mark; what the agent left behind still holds it.
        marks = sorted(_exit_marks(folder), key=lambda mark: -os.stat(f"{folder}/{mark}").st_size)
        if not marks:
            raise
        lock = os.open(f"{folder}/{marks[0]}", flags)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    return lock


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
        names = os.listdir(folder)
    except FileNotFoundError:
        return Marks()
    codes = tuple(sorted(code for name in names if (code := _exit_code(name)) is not None))
    begun = LOCK in names and os.stat(f"{folder}/{LOCK}").st_size > 0
    return Marks(exit_codes=codes, begun=begun, void=VOID in names, hung=HUNG in names)


def _exit_code(name: str) -> int | None:
    code = name.removeprefix(_EXIT)
    return int(code) if code.isdecimal() and len(code) < len(name) <= _EXIT_CHARS_MAX else None


def _exit_marks(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _exit_code(name) is not None)
    except FileNotFoundError:
        return []


def leave_mark(folder: Path, name: str) -> None:
    """Leave an empty file in a launch's folder; what lies under its name, a link too, is a mark already."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))


def write_birth(lock: int, birth: Birth) -> None:
    """Marks the launch as begun, through the descriptor that holds its lock. A power cut may tear it, nothing else."""
    os.write(lock, _BIRTH.encode(birth) + b"\n")


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
        said = read_bounded(folder / ERR, _LINES_BYTES_MAX, follow=False).decode("utf-8", "replace").strip()
        if os.stat(f"{folder}/{OUT}").st_size > 0:
            return ""
    except FileNotFoundError:
        made = (folder / ERR).exists() or (folder / OUT).exists() or not folder.is_dir()
        return "" if made else "no process could be made"
    except TooLarge:
        return ""
    ours = said.startswith(_OUR_WORDS) and "\n" not in said and says_shortage(said)
    return said if ours else ""


def reopen(folder: Path, lock: int) -> None:
    """Makes a launch whose program was never started new again, through the descriptor that holds its lock."""
    unwrite_birth(lock)
    for mark in _exit_marks(folder):
        if (folder / LOCK).exists():
            (folder / mark).unlink()
        else:  # on a full disk the lock became the exit mark
            (folder / mark).rename(folder / LOCK)
    for name in (OUT, ERR):
        (folder / name).unlink(missing_ok=True)


def read_birth(folder: Path) -> Birth | None:
    """Return who was started, or None when that is not (any more) known: never begun, or torn by a power cut."""
    try:
        return msgspec.json.decode(_lines(folder)[0], type=Birth)
    except msgspec.DecodeError:
        return None


def read_pid(folder: Path) -> int | None:
    """The shim's process id as the shim wrote it; None until it did."""
    text = _lines(folder)[1]
    return int(text) if text.isdigit() and len(text) < 10 else None


def _lines(folder: Path) -> tuple[bytes, bytes]:
    for name in (LOCK, *_exit_marks(folder)):  # on a full disk the lock became the exit mark
        try:
            with open_regular(folder / name) as file:
                birth, _, rest = file.read(_LINES_BYTES_MAX).partition(b"\n")
        except OSError:
            continue
        if birth:
            return birth, rest.partition(b"\n")[0]
    return b"", b""


def ended_us(folder: Path, code: int) -> int | None:
    """When the shim wrote the exit mark."""
    try:
        return os.stat(f"{folder}/{_EXIT}{code}").st_ctime_ns // 1000
    except OSError:
        return None


def last_sign_ns(folder: Path, *, same_boot: bool) -> int:
    """Until when a launch may have lived: our mark of its end, and for ever without one.

    One that a restart of the machine ended without a mark lived until the last thing that it wrote.
    """
    if is_locked(folder):
        return sys.maxsize
    names = [*_exit_marks(folder), *(name for name in (LOST, VOID) if (folder / name).exists())]
    if not names and same_boot:
        return sys.maxsize
    signs = [file.stat().st_ctime_ns for name in names or (LOCK, OUT, ERR) if (file := folder / name).exists()]
    return max(signs, default=0)


def output_bytes(files: tuple[str, str]) -> int:
    """Return how much both streams hold by now."""
    total = 0
    for file in files:
        try:
            total += os.stat(file).st_size
        except OSError:
            continue
    return total
