"""The status of a loop and the one table of its transitions; every refusal is made of it.

running ──▶ paused ──▶ running          completing ──▶ completed
   │           └─────▶ aborted               ├───────▶ failed
   ├──▶ completing                           └───────▶ crashed
   └──▶ aborted, crashed, failed
"""

from __future__ import annotations

from enum import StrEnum


class LoopStatus(StrEnum):
    """The seed's words."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETING = "completing"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    CRASHED = "crashed"


ALLOWED: dict[LoopStatus, tuple[LoopStatus, ...]] = {
    LoopStatus.RUNNING: (LoopStatus.PAUSED, LoopStatus.COMPLETING, LoopStatus.ABORTED, LoopStatus.CRASHED, LoopStatus.FAILED),
    LoopStatus.PAUSED: (LoopStatus.RUNNING, LoopStatus.ABORTED),
    LoopStatus.COMPLETING: (LoopStatus.COMPLETED, LoopStatus.FAILED, LoopStatus.CRASHED),
    LoopStatus.COMPLETED: (),
    LoopStatus.FAILED: (),
    LoopStatus.ABORTED: (),
    LoopStatus.CRASHED: (),
}
"""From each status, where a loop may go."""

ACTIVE = (LoopStatus.RUNNING, LoopStatus.PAUSED, LoopStatus.COMPLETING)
"""The statuses that the registry lists and the limit on loops counts."""

ENDED = tuple(status for status, ways in ALLOWED.items() if not ways)
"""The terminal statuses."""


def refusal(now: LoopStatus, wanted: LoopStatus) -> str | None:
    """Say why a loop cannot go from one status to another, or None when it can."""
    if wanted in ALLOWED[now]:
        return None
    ways = ", ".join(ALLOWED[now]) or "nothing, it is terminal"
    return f"a loop that is {now} cannot become {wanted}; from {now} it can become: {ways}"
