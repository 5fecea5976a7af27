"""The floor: SQLite in WAL with FULL, one insert per transaction into a table like ours, and nothing else."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import apsw

from benchmarks.protocol import RECORD, serve

BODY = json.dumps({**RECORD, "more": "x" * 110}).encode()
"""About what a step of a chain puts into a journal row of ours, which is more than a peer's record."""
TABLE = """
CREATE TABLE IF NOT EXISTS events (key INTEGER PRIMARY KEY, run INTEGER, seq INTEGER, at_us INTEGER, body BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS by_run ON events (run, seq);
"""


class BareJournal:
    """A database with a journal."""

    def __init__(self) -> None:
        self._seq = 0

    def open(self, folder: str) -> None:
        """Open it."""
        self._db = apsw.Connection(str(Path(folder) / "bare.db"))
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "full")
        self._db.execute(TABLE)

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Commit so many rows one by one; return the seconds of each after the earlier ones."""
        taken = []
        for _ in range(earlier + count):
            self._seq += 1
            began = time.perf_counter()
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO events (run, seq, at_us, body) VALUES (1, ?, 0, ?)", (self._seq, BODY))
            self._db.execute("COMMIT")
            taken.append(time.perf_counter() - began)
        return taken[earlier:]

    def interrupt(self, earlier: int) -> None:
        """End this process after so many commits."""
        self.steps(earlier)
        os._exit(0)

    def resume(self, folder: str) -> int:
        """Read and decode every row of the database; return the time at which a next step could begin."""
        db = apsw.Connection(str(Path(folder) / "bare.db"))
        read = [json.loads(body) for (body,) in db.execute("SELECT body FROM events ORDER BY run, seq")]
        assert read
        return time.time_ns()

    def shims(self, folder: str, count: int, *, keep: bool = False) -> list[float]:
        """Seconds of each of so many bare shim runs; with `keep`, each makes and keeps files of its own."""
        return [_launch_s(Path(folder) / f"launch{time.monotonic_ns()}") if keep else _shim_s(Path(folder)) for _ in range(count)]


def _launch_s(own: Path) -> float:
    """Do the same with what a launch leaves behind: a folder, lock and prompt; output and exit mark follow."""
    began = time.perf_counter()
    own.mkdir()
    for name in ("lock", "prompt.md"):
        os.close(os.open(own / name, os.O_CREAT | os.O_WRONLY))
    return time.perf_counter() - began + _shim_s(own)


def _shim_s(folder: Path) -> float:
    """Return the seconds that `sh -c` around `true` takes from spawn to reaped end, with its output in a file."""
    began = time.perf_counter()
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", 'cd "$1"; shift; (exec "$@") >>out 2>>err </dev/null; true >"exit.$?"', "sh", str(folder), "/bin/true"],
        {"PATH": "/usr/bin:/bin"},
        setsid=True,
    )
    os.waitpid(pid, 0)
    return time.perf_counter() - began


if __name__ == "__main__":
    journal = BareJournal()
    serve(open=journal.open, steps=journal.steps, shims=journal.shims, interrupt=journal.interrupt, resume=journal.resume)
