"""The floor on PostgreSQL: one insert per transaction into a table like ours, by the same library, and nothing else."""

from __future__ import annotations

import sys
import time

import psycopg

from benchmarks.floor import BODY
from benchmarks.protocol import serve

TABLE = "CREATE TABLE IF NOT EXISTS bare (run bigint, seq bigint, at_us bigint, body bytea, PRIMARY KEY (run, seq))"
INSERT = b"INSERT INTO bare (run, seq, at_us, body) VALUES (1, %s, 0, %s)"


class BareTable:
    """A table with a journal."""

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(url, autocommit=True)
        self._seq = 0

    def open(self, folder: str) -> None:
        """Make it."""
        self._db.execute(TABLE.encode())

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Commit so many rows one by one; return the seconds of each after the earlier ones."""
        taken = []
        for _ in range(earlier + count):
            self._seq += 1
            began = time.perf_counter()
            self._db.execute(INSERT, (self._seq, BODY), prepare=True)
            taken.append(time.perf_counter() - began)
        return taken[earlier:]


if __name__ == "__main__":
    table = BareTable(sys.argv[1])
    serve(open=table.open, steps=table.steps)
