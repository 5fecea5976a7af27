"""Prefect: a flow of tasks on its ephemeral server, results persisted. Task states reach the server on their own time."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.protocol import RECORD, Entries, serve

ENTRIES = Entries()


class Chain:
    """Flows of one server, which is started with the first."""

    def open(self, folder: str) -> None:
        """Set up the server's folder: Prefect reads it when it is imported."""
        os.environ.update(
            PREFECT_HOME=folder,
            PREFECT_LOGGING_LEVEL="CRITICAL",
            PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
            PREFECT_SERVER_ANALYTICS_ENABLED="false",
            PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="60",
            DO_NOT_TRACK="1",
        )
        from prefect import flow, task
        from prefect.cache_policies import NO_CACHE

        @task(persist_result=True, cache_policy=NO_CACHE)
        def step(number: int) -> dict[str, Any]:
            ENTRIES.enter()
            return RECORD

        @flow
        def run_chain(count: int) -> None:
            for number in range(count):
                step(number)

        self._run = run_chain
        self._run(2)
        ENTRIES.take_gaps()

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Run a flow, the earlier tasks included."""
        self._run(earlier + count + 1)
        return ENTRIES.take_gaps()[-count:]


if __name__ == "__main__":
    chain = Chain()
    serve(open=chain.open, steps=chain.steps)
