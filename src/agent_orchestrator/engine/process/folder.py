"""A launch's directory: `lock` says who lives, `running`, `exit.<code>` and `void` say what became of it.

Whatever is concluded from the marks is concluded while holding the lock. Nothing here is fsynced: a power cut ends
every launch anyway, and after one a launch is never started again.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

LOCK, RUNNING, VOID, PID, OUT, ERR = "lock", "running", "void", "pid", "out", "err"
HUNG = "hung"
"""Left before a program is stopped that had written its result and did not exit."""

_EXIT = "exit."


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """What `running` holds: everything about a launch that is known before its process exists."""

    nonce: str
    boot: str
    started_us: int
    started_s: float
    """The monotonic clock at the start; it goes on counting through an engine's death, not through a reboot."""


class Marks(NamedTuple):
    """What a launch left behind."""

    exit_code: int | None = None
    running: bool = False
    void: bool = False
    hung: bool = False

    @property
    def ended(self) -> bool:
        """Whether it may never be started (again)."""
        return self.running or self.void or self.exit_code is not None


def take_lock(folder: Path, *, create: bool = False) -> int | None:
    """A descriptor that holds the launch's lock; None while somebody else does. FileNotFoundError without a lock file."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    lock = os.open(folder / LOCK, flags, 0o644)
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
    """Whether anything of the launch lives."""
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
    codes = [name[len(_EXIT) :] for name in names if name.startswith(_EXIT)]
    code = next((int(code) for code in codes if code.isdecimal()), None)
    return Marks(exit_code=code, running=RUNNING in names, void=VOID in names, hung=HUNG in names)


def write_birth(folder: Path, birth: Birth) -> None:
    """Marks the launch as started; FileExistsError when it was before."""
    marker = os.open(folder / RUNNING, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(marker, msgspec.json.encode(birth))
    finally:
        os.close(marker)


def read_birth(folder: Path) -> Birth | None:
    """Who was started, or None when that is not (any more) known: never marked, or torn by a power cut."""
    try:
        return msgspec.json.decode((folder / RUNNING).read_bytes(), type=Birth)
    except (OSError, msgspec.DecodeError):
        return None


def read_pid(folder: Path) -> int | None:
    """The shim's process id as the shim wrote it; None until it did."""
    try:
        text = (folder / PID).read_bytes().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and len(text) < 10 else None


def ended_us(folder: Path, code: int) -> int | None:
    """When the shim wrote the exit mark."""
    try:
        return os.stat(folder / f"{_EXIT}{code}").st_mtime_ns // 1000
    except OSError:
        return None


def output_bytes(files: tuple[str, str]) -> int:
    """How much both streams hold by now."""
    total = 0
    for file in files:
        try:
            total += os.stat(file).st_size
        except OSError:
            continue
    return total
