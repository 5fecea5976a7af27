"""Counts work: steps of SQLite's virtual machine, and calls of functions. A test of what something costs looks at no clock."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from agent_orchestrator.core.units import latest_ns
from agent_orchestrator.git.environment import files_now_ns


class Work:
    """The steps of all statements."""

    def __init__(self) -> None:
        self.steps = 0

    def add(self, done: dict[str, Any]) -> None:
        self.steps += done["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]


@contextmanager
def counted() -> Iterator[Work]:
    """Counts on all connections that are opened meanwhile."""
    work = Work()

    def hook(db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_PROFILE, work.add)

    apsw.connection_hooks.append(hook)
    try:
        yield work
    finally:
        apsw.connection_hooks.remove(hook)


def count_calls(act: Callable[[], object]) -> Counter[str]:
    """Count the calls of functions by name."""
    calls: Counter[str] = Counter()

    def note(frame: Any, event: str, called: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1
        elif event == "c_call":
            calls[called.__name__] += 1

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def until_settled(repo: Path, *files: Path) -> None:
    """Wait until the settings of a repository are so old that they are remembered: a file changes again under another time."""
    for file in (repo / ".git/config", *files):
        while latest_ns(file.stat().st_ctime_ns) >= files_now_ns():
            time.sleep(0.001)
