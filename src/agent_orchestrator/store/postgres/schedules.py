"""Schedules: commands that queue a run by the clock, and who makes the run of a due time, by the server's word.

The run of a due time is queued by the same call that moves its schedule on. So there is one, whoever is killed or thaws.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from agent_orchestrator.store.postgres.connection import Link
from agent_orchestrator.store.postgres.leases import Leases


class Schedule(NamedTuple):
    """A schedule as it stands."""

    key: int
    repository: str
    name: str
    cron: str
    zone: str
    words: Sequence[str]
    """The command that queues a run, without what a worker adds."""
    remote: str
    branch: str
    """The branch that a run begins at the head of; empty for the remote's own."""
    folder: str
    """The folder of the repository in which the command is given."""
    pool: str
    overlap: str
    """`skip`: a due time gets no run while an earlier one has not ended; `allow`: it gets one beside it."""
    paused: bool
    next_us: int
    begun_us: int | None
    """The due time that a run is being made for."""
    last_us: int | None
    last_run: str
    failure: str
    """The reason why the last attempt made no run; empty where it did."""


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """The right to queue the run of a due time."""

    schedule: int
    claim: uuid.UUID
    next_us: int
    """The due time after it."""


class Begun(NamedTuple):
    """A due time that is this worker's to make the run of, or to skip."""

    overlap: str | None
    """The run of the schedule that has not ended, where no other may run beside it."""


class Schedules:
    """The schedules of a database."""

    def __init__(self, link: Link, sql: dict[str, str], leases: Leases) -> None:
        self._link, self._sql, self._leases = link, sql, leases

    def add(self, schedule: Schedule) -> bool:
        """Keep a new schedule; False if its repository has one of that name."""
        one = schedule
        times, place = (one.name, one.cron, one.zone, list(one.words)), (one.remote, one.branch, one.folder, one.pool)
        values = (self._repository(one.repository), *times, *place, one.overlap, one.next_us)
        return bool(self._link.write(self._sql["insert_schedule"], values, tries=1))

    def list(self, repository: str) -> list[Schedule]:
        """Return the schedules of a repository by name."""
        return [Schedule(*row) for row in self._link.read(self._sql["select_schedules"], (repository,))]

    def remove(self, repository: str, name: str) -> bool:
        """Forget a schedule; False if there is none."""
        return bool(self._link.write(self._sql["delete_schedule"], (self._repository(repository), name), tries=1))

    def pause(self, repository: str, name: str, *, paused: bool, next_us: int) -> bool:
        """Let a schedule rest, or go on with its next due time; False if there is none."""
        return bool(self._link.write(self._sql["pause_schedule"], (self._repository(repository), name, paused, next_us)))

    def take_due(self, claim: uuid.UUID, pool: str) -> Schedule | None:
        """Take one that is due and that nobody who lives is at, under a claim."""
        values = (claim, self._leases.worker, self._leases.incarnation, pool)
        rows = self._link.write(self._sql["take_due"], values)
        return Schedule(*rows[0]) if rows else None

    def begin(self, firing: Firing, due_us: int) -> Begun | None:
        """Write down the due time that a run is being made for; None where somebody else has the schedule."""
        rows = self._link.write(self._sql["begin_due"], (firing.schedule, firing.claim, due_us))
        return Begun(*rows[0]) if rows else None

    def fire(self, firing: Firing, run: str, repository: str, pool: str, priority: int) -> bool | None:
        """Queue the run of a due time and move on; False where somebody else has the schedule, None where it is gone."""
        key = self._repository(repository)
        values = (firing.schedule, firing.claim, key, run, pool, priority, firing.next_us)
        answer: bool | None = self._link.write(self._sql["fire"], values)[0][0]
        return answer

    def retry(self, firing: Firing, failure: str, again_us: int) -> None:
        """Let anybody make the run of this due time, from a time on."""
        self._link.write(self._sql["retry_due"], (firing.schedule, firing.claim, failure, again_us))

    def skip(self, firing: Firing, failure: str) -> None:
        """Move on without a run of this due time: trying again would not help."""
        self._link.write(self._sql["skip_due"], (firing.schedule, firing.claim, failure, firing.next_us))

    def _repository(self, name: str) -> int:
        return int(self._link.write(self._sql["make_repository"], (name,))[0][0])
