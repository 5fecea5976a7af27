"""DBOS on SQLite: `shipped` as it comes, with a rollback journal; `wal` with an engine of our own in WAL and FULL."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import sqlalchemy
from dbos import DBOS, SetWorkflowID

from benchmarks.protocol import RECORD, Entries, serve

ENTRIES = Entries()
STOP_AT = [0]
ENTERED = threading.Event()
ENTERED_NS = [0]
RESUMED_S = 120.0


@DBOS.step()
def step(number: int) -> dict[str, Any]:
    """Leave a record."""
    ENTRIES.enter()
    if STOP_AT[0] == -1:
        ENTERED_NS[0] = time.time_ns()
        ENTERED.set()
    elif number + 1 == STOP_AT[0]:
        os._exit(0)
    return RECORD


@DBOS.workflow()
def run_chain(count: int) -> None:
    """Run so many steps."""
    for number in range(count):
        step(number)
        if ENTERED.is_set():
            return


class Chain:
    """Workflows of one database."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def open(self, folder: str) -> None:
        """Start DBOS on a database in the folder; it goes on at once with whatever was broken off."""
        url = f"sqlite:///{Path(folder) / 'dbos.db'}"
        config: Any = {"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"}
        if self._kind == "wal":
            config["system_database_engine"] = _wal_engine(url)
        DBOS(config=config)
        DBOS.launch()

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Run a workflow, the earlier steps included."""
        run_chain(earlier + count + 1)
        return ENTRIES.take_gaps()[-count:]

    def interrupt(self, earlier: int) -> None:
        """End this process inside the step after so many."""
        STOP_AT[0] = earlier + 1
        with SetWorkflowID("broken-off"):
            run_chain(earlier + 1_000)

    def resume(self, folder: str) -> int:
        """Start DBOS, and return the time at which the next step began."""
        STOP_AT[0] = -1
        self.open(folder)
        assert ENTERED.wait(RESUMED_S), "no step followed"
        return ENTERED_NS[0]


def _wal_engine(url: str) -> sqlalchemy.Engine:
    engine = sqlalchemy.create_engine(url, connect_args={"check_same_thread": False})

    @sqlalchemy.event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    return engine


if __name__ == "__main__":
    chain = Chain(sys.argv[1])
    serve(open=chain.open, steps=chain.steps, interrupt=chain.interrupt, resume=chain.resume)
