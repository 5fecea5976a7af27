"""The only reader of the clock. Wall time for deadlines and journals, monotonic time for running time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The engine's source of time; the test kit has one that jumps."""

    def now_us(self) -> int:
        """Wall-clock time in microseconds since the epoch."""

    def monotonic_s(self) -> float:
        """Seconds that never go back and stand still while the machine is suspended."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Wall-clock time."""
        return time.time_ns() // 1000

    monotonic_s = staticmethod(time.monotonic)
    """Monotonic time, suspend excluded on Linux."""


def boottime_s() -> float:
    """Return seconds that never go back and count on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """Identifies this boot of the machine; '' where it cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def place_id() -> str:
    """Identify this boot of this machine, and the place in it whose processes see each other: containers share a boot."""
    try:
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        namespace = ""
    return f"{boot_id()}/{os.uname().nodename}.{namespace}"
