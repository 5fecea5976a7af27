"""Counts the work that SQLite does, in steps of its virtual machine: a test of what something costs must not look at a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


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
