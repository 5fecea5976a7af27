"""The status of a loop and the one table of its transitions; every refusal is made of it.

running ──▶ paused ──▶ running          completing ──▶ completed
   │           └─────▶ aborted               ├───────▶ failed
   ├──▶ completing                           └───────▶ crashed
   └──▶ aborted, crashed, failed
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The seed's words."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETING = "completing"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    CRASHED = "crashed"


ALLOWED: dict[Status, tuple[Status, ...]] = {
    Status.RUNNING: (Status.PAUSED, Status.COMPLETING, Status.ABORTED, Status.CRASHED, Status.FAILED),
    Status.PAUSED: (Status.RUNNING, Status.ABORTED),
    Status.COMPLETING: (Status.COMPLETED, Status.FAILED, Status.CRASHED),
    Status.COMPLETED: (),
    Status.FAILED: (),
    Status.ABORTED: (),
    Status.CRASHED: (),
}
"""From each status, where a loop may go."""

ACTIVE = (Status.RUNNING, Status.PAUSED, Status.COMPLETING)
"""What the registry lists and the limit on loops counts."""

ENDED = tuple(status for status, ways in ALLOWED.items() if not ways)
"""What is terminal."""


def refusal(now: Status, wanted: Status) -> str | None:
    """Why a loop cannot go from one status to another, or None when it can."""
    if wanted in ALLOWED[now]:
        return None
    ways = ", ".join(ALLOWED[now]) or "nothing, it is terminal"
    return f"a loop that is {now} cannot become {wanted}; from {now} it can become: {ways}"
