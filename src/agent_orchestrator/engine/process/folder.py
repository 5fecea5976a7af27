"""A launch's directory: `lock` says who lives; what it holds, `exit.<code>` and `void` say what became of it.

The lock file has two lines once the launch began: its birth, then the shim's pid. Whatever is concluded from the marks
is concluded while holding the lock. Nothing here is fsynced: a power cut ends every launch anyway, and after one a
launch is never started again.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

LOCK, VOID, OUT, ERR = "lock", "void", "out", "err"
STOPPED = "stopped"
"""Left before a program is stopped, until its end is settled: nobody may want it any more, but what it consumed counts."""
HUNG = "hung"
"""Left before a program is stopped that had written its result and did not exit."""

_EXIT = "exit."
_BIRTH = msgspec.json.Encoder()


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """The lock file's first line: everything about a launch that is known before its process exists."""

    nonce: str
    boot: str
    started_us: int
    started_s: float
    """The monotonic clock at the start; it goes on counting through an engine's death, not through a reboot."""


class Marks(NamedTuple):
    """The marks that a launch left behind."""

    exit_code: int | None = None
    begun: bool = False
    void: bool = False
    hung: bool = False

    @property
    def ended(self) -> bool:
        """Say whether it may never be started (again)."""
        return self.begun or self.void or self.exit_code is not None


def take_lock(folder: Path, *, create: bool = False) -> int | None:
    """A descriptor that holds the launch's lock; None while somebody else does. FileNotFoundError without a lock file."""
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        lock = os.open(f"{folder}/{LOCK}", flags | (os.O_CREAT if create else 0), 0o644)
    except FileNotFoundError:
        # On a full disk the shim renames the lock itself to the exit mark; what the agent left behind still holds it.
        mark = _exit_mark(folder)
        if mark is None:
            raise
        lock = os.open(f"{folder}/{mark}", flags)
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
    code = next((code for name in names if (code := _exit_code(name)) is not None), None)
    begun = LOCK in names and os.stat(f"{folder}/{LOCK}").st_size > 0
    return Marks(exit_code=code, begun=begun, void=VOID in names, hung=HUNG in names)


def _exit_code(name: str) -> int | None:
    code = name.removeprefix(_EXIT)
    return int(code) if code.isdecimal() and len(code) < len(name) else None


def _exit_mark(folder: Path) -> str | None:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return None
    return next((name for name in names if _exit_code(name) is not None), None)


def write_birth(lock: int, birth: Birth) -> None:
    """Marks the launch as begun, through the descriptor that holds its lock. A power cut may tear it, nothing else."""
    os.write(lock, _BIRTH.encode(birth) + b"\n")


def unwrite_birth(lock: int) -> None:
    """The launch did not begin after all."""
    os.ftruncate(lock, 0)
    os.lseek(lock, 0, os.SEEK_SET)


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
    try:
        with open(f"{folder}/{LOCK}", "rb") as file:
            birth, _, rest = file.read().partition(b"\n")
    except OSError:
        return b"", b""
    return birth, rest.partition(b"\n")[0]


def ended_us(folder: Path, code: int) -> int | None:
    """When the shim wrote the exit mark."""
    try:
        return os.stat(f"{folder}/{_EXIT}{code}").st_ctime_ns // 1000
    except OSError:
        return None


def last_sign_ns(folder: Path) -> int:
    """Until when a launch lived: its exit mark, or the last thing that it wrote when it was lost; for ever while it lives."""
    if is_locked(folder):
        return sys.maxsize
    mark = _exit_mark(folder)
    names = [mark] if mark is not None else [LOCK, OUT, ERR]
    signs = [file.stat().st_ctime_ns for name in names if (file := folder / name).exists()]
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
