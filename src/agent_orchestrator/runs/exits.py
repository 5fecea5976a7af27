"""The exit codes of `orc`, in one place: the table people read and the function that maps a run to its code.

Imports nothing: `orc --help` prints the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_orchestrator.core.summary import Summary

COMPLETED, FAILED, USAGE, ENVIRONMENT, WAITING, LIMIT, RATE_LIMITED, TIMED_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 124, 130

EXIT_CODES = {
    COMPLETED: "done; a run that was started, resumed or watched is completed",
    FAILED: "the run failed or was aborted",
    USAGE: "wrong usage or invalid input",
    ENVIRONMENT: "the environment: agent missing, store locked, disk full, run in use",
    WAITING: "the run waits for a person",
    LIMIT: "a budget or a limit is reached",
    RATE_LIMITED: "the run is parked on a rate limit",
    TIMED_OUT: "the run timed out",
    INTERRUPTED: "interrupted or paused; `orc resume` continues",
}

_BY_STATUS = {
    "completed": COMPLETED,
    "failed": FAILED,
    "aborted": FAILED,
    "stuck": FAILED,
    "crashed": FAILED,
    "limit_reached": LIMIT,
    "budget_exhausted": LIMIT,
    "timed_out": TIMED_OUT,
    "rate_limited": RATE_LIMITED,
    "waiting_on_human": WAITING,
    "waiting": WAITING,
}


def exit_code(summary: Summary) -> int:
    """Return the code for a run as it stands; one that neither ended nor waits was interrupted, or stopped by what it says."""
    why = summary.stop.value if summary.stop is not None and summary.status in ("paused", "waiting") else summary.status
    return _BY_STATUS.get(why, INTERRUPTED)
