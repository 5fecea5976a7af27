"""The barest programs that do what ours is compared with: one durable commit, one shim, one decoded row."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

BODY = b"x" * 300
"""About what a step of a chain puts into a journal row."""


class BareJournal:
    """SQLite, WAL, synchronous FULL, one insert per transaction into a table like ours: nothing else."""

    def __init__(self, folder: Path) -> None:
        self._db = apsw.Connection(str(folder / f"bare-{time.monotonic_ns()}.db"))
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "full")
        self._db.execute("CREATE TABLE events (key INTEGER PRIMARY KEY, run INTEGER, seq INTEGER, at_us INTEGER, body BLOB)")
        self._db.execute("CREATE UNIQUE INDEX by_run ON events (run, seq)")
        self._seq = 0
        self.commits(300)

    def commits(self, count: int) -> list[float]:
        """Seconds of each of `count` commits; a young WAL is slower, so the first few hundred are made on opening."""
        taken = []
        for _ in range(count):
            self._seq += 1
            began = time.perf_counter()
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO events (run, seq, at_us, body) VALUES (1, ?, 0, ?)", (self._seq, BODY))
            self._db.execute("COMMIT")
            taken.append(time.perf_counter() - began)
        return taken

    def close(self) -> None:
        self._db.close()


def bare_launch_s(folder: Path, number: int) -> float:
    """The same with what a launch leaves behind, made for it alone: a folder, lock and prompt; output and exit mark follow."""
    began = time.perf_counter()
    own = folder / f"launch{number}"
    own.mkdir()
    for name in ("lock", "prompt.md"):
        os.close(os.open(own / name, os.O_CREAT | os.O_WRONLY))
    return time.perf_counter() - began + bare_shim_s(own)


def bare_shim_s(folder: Path) -> float:
    """Seconds that `sh -c` around `true` takes from spawn to reaped end, with its output in a file."""
    began = time.perf_counter()
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", 'cd "$1"; shift; (exec "$@") >>out 2>>err </dev/null; true >"exit.$?"', "sh", str(folder), "/bin/true"],
        {"PATH": "/usr/bin:/bin"},
        setsid=True,
    )
    os.waitpid(pid, 0)
    return time.perf_counter() - began
