"""The table of runs, for `list`, `status` and `orc` alone. It must be there at once: nothing is imported here that costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_orchestrator.core.units import US
from agent_orchestrator.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


def say_age(then_us: int, now_us: int) -> str:
    """Say how long ago, in the largest unit."""
    seconds = max(0, now_us - then_us) / US
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{name} ago"
    return f"{int(seconds)}s ago"


def print_runs(orchestrator: Orchestrator, screen: Screen, runs: Sequence[StoredRun]) -> None:
    """Print one line per run."""
    now_us = orchestrator.clock.now_us()
    rows = []
    for run in runs:
        summary = run.summary
        what = summary.detail
        if not summary.ended and summary.status != "paused" and orchestrator.owner(run) is None:
            what = "waits for a worker" if run.context.remote else f"not running: orc resume {run.id}"
        elif not what and summary.doing:
            what = ", ".join(summary.doing)
        rows.append((run.id, run.name, summary.status, f"{summary.done}/{summary.total}", say_age(run.updated_us, now_us), what))
    screen.table(("RUN", "NAME", "STATUS", "DONE", "UPDATED", "WHAT"), rows, status=2, whole=0)
