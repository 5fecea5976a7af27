"""The allowance for print-outs of states that another state follows at once.

Counted in bytes, not in time: a machine that others keep busy is slow, and must not for that show less.
"""

from __future__ import annotations

from agent_orchestrator.engine.clock import Clock

BURST_BYTES = 2 * 1024 * 1024
RATE_BYTES_S = 1024 * 1024
"""About 3 % of the time of a machine that encodes and writes 30 MB of small files in a second."""
FILE_BYTES = 24 * 1024
"""The cost of a file besides its content: making, recording, finding again and renaming it takes as long as writing this much."""


class Allowance:
    """Bytes that may be written: a burst, then so many per second. It may be overdrawn, and is left when that is made up for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(BURST_BYTES)
        self._looked_s = clock.monotonic_s()

    def is_left(self) -> bool:
        """Say whether something may be written now."""
        now_s = self._clock.monotonic_s()
        self._left = min(BURST_BYTES, self._left + (now_s - self._looked_s) * RATE_BYTES_S)
        self._looked_s = now_s
        return self._left > 0

    def spend(self, size: int, files: int) -> None:
        """So many bytes were looked at or written, in so many files."""
        self._left -= size + files * FILE_BYTES
