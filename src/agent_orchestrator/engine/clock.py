"""The only reader of the clock. Wall time for deadlines and journals, monotonic time for running time."""

from __future__ import annotations

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

    def monotonic_s(self) -> float:
        """Monotonic time, suspend excluded on Linux."""
        return time.monotonic()


def boot_id() -> str:
    """Identifies this boot of the machine; '' where it cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
