"""The workers and the queue of a database, whatever the repository: who takes which run, by the server's word."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.connection import Link
from agent_orchestrator.store.postgres.leases import Claimed, Leases
from agent_orchestrator.store.postgres.schedules import Schedules
from agent_orchestrator.store.postgres.schema import SQL, open_schema
from agent_orchestrator.store.queries import queries


class KnownWorker(NamedTuple):
    """A worker as others see it."""

    name: str
    host: str
    pid: int
    pool: str
    """Empty for a process that drives only what was started with it."""
    capacity: int
    root: str
    version: str
    drain: bool
    lease_s: float
    """Seconds until its lease is over; negative where it is."""
    joined_s: float
    runs: Sequence[str]
    """REPOSITORY RUN, each."""


class QueueLength(NamedTuple):
    """The runs of a pool that have not ended."""

    pool: str
    queued: int
    driven: int
    resting: int


class KnownAccount(NamedTuple):
    """An account, and how many agents of it work."""

    name: str
    limit: int | None
    working: int


class Claimable(NamedTuple):
    """A run that a worker of its pool could claim."""

    repository: str
    run: RunId
    epoch: int
    priority: int


class Cluster:
    """A connection for the queue, and a second one for the lease of this process, which waits for nothing else."""

    def __init__(self, url: str) -> None:
        self.url, self.address = url, ServerAddress(url)
        self._sql = queries(SQL)
        self._link = Link(self.address, self._prepare, patient=False)
        self.leases = Leases(Link(self.address, self._prepare, patient=False), self._sql, "", lambda: None)
        self.schedules = Schedules(self._link, self._sql, self.leases)

    def _prepare(self, made: psycopg.Connection) -> None:
        open_schema(self.address, made)
        made.execute(self._sql["listen"].encode())

    def read_clock_us(self) -> int:
        """Return the server's time, in microseconds."""
        return int(self._link.read(self._sql["server_clock"])[0][0])

    def read_placing(self) -> str:
        """Return what places the runs of this database: `table` or `dbos`."""
        return str(self._link.read(self._sql["select_placing"])[0][0])

    def choose_placing(self, placing: str) -> bool:
        """Choose what places the runs of this database; False while workers live that go by another choice."""
        return bool(self._link.write(self._sql["choose_placing"], (placing,))[0][0])

    def list_claimable(self, pool: str, ttl_s: float, most: int) -> list[Claimable]:
        """Return what this process could claim in a pool now, the most urgent first."""
        values = (self.leases.worker, pool, ttl_s, most)
        return [Claimable(*row) for row in self._link.read(self._sql["select_claimable"], values)]

    def claim_hinted(self, claim: uuid.UUID, pool: str, hinted: tuple[str, str], ttl_s: float) -> Claimed | None:
        """Take a run of a pool, given as repository and id, if it can be claimed; may be repeated under the same claim."""
        values = (claim, self.leases.worker, self.leases.incarnation, pool, *hinted, ttl_s)
        rows = self._link.write(self._sql["claim_hinted"], values)
        return Claimed(*rows[0]) if rows else None

    def list_incarnations(self) -> set[str]:
        """Return every process whose lease holds, by what tells it from any other one, also of the same name."""
        return {row[0] for row in self._link.read(self._sql["select_incarnations"])}

    def claim_one(self, run: str) -> list[Claimed]:
        """Take one run that nobody drives."""
        return self._take("claim_one", run)

    def inherit(self) -> list[Claimed]:
        """Take what an earlier process of this very worker had; the caller knows that it is dead."""
        return self._take("inherit")

    def _take(self, statement: str, *values: object) -> list[Claimed]:
        said = (uuid.uuid4(), self.leases.worker, self.leases.incarnation, *values)
        return [Claimed(*row) for row in self._link.write(self._sql[statement], said)]

    def list_claimed(self) -> list[Claimed]:
        """Return every run that this process has by the store's word."""
        return [Claimed(*row) for row in self._link.read(self._sql["select_claimed"], (self.leases.worker,))]

    def find_run(self, repository: str, run: str) -> tuple[str, int] | None:
        """Return whether a run is resting, queued, driven or ended, and its epoch; None if there is no such run."""
        rows = self._link.read(self._sql["select_standing"], (repository, run))
        return (rows[0][0], rows[0][1]) if rows else None

    def list_workers(self) -> list[KnownWorker]:
        """Return all workers, those whose lease is over included."""
        return [KnownWorker(*row) for row in self._link.read(self._sql["select_workers"])]

    def list_queues(self) -> list[QueueLength]:
        """Return the pools that have runs."""
        return [QueueLength(*row) for row in self._link.read(self._sql["select_queues"])]

    def drain(self, name: str, *, wanted: bool) -> int:
        """Ask the workers of a name to take nothing new, or to take runs again; returns how many there are."""
        return int(self._link.write(self._sql["drain"], (name, wanted))[0][0])

    def limit(self, repository: str, most: int | None) -> None:
        """Let workers drive at most so many runs of a repository at once; None for as many as there is room for."""
        self._link.write(self._sql["set_limit"], (repository, most))

    def list_limits(self) -> dict[str, int]:
        """Return the repositories with a limit."""
        rows: Any = self._link.read(self._sql["select_limits"])
        return dict(rows)

    def limit_account(self, name: str, most: int | None) -> None:
        """Let at most so many agents of an account work at once, on all hosts together; None for any number."""
        self._link.write(self._sql["limit_account"], (name, most))

    def list_accounts(self) -> list[KnownAccount]:
        """Return the accounts with a limit, or with agents at work."""
        return [KnownAccount(*row) for row in self._link.read(self._sql["select_accounts"])]

    def hear(self) -> list[str]:
        """Return what was announced since: `queue/POOL` for a run that waits there."""
        return self._link.hear()

    def close(self) -> None:
        """End the connections."""
        self._link.close()
        self.leases.close()
