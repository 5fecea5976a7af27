"""The feed of one repository: its journals' tail, read once for all readers, and merged for each of them.

A reader is told which runs moved, at most ten times a second, as they are when it is told: a thousand facts between two frames
are one. Nothing is read while nobody reads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.tail import Tail, TailPlace
from agent_orchestrator.store.port import Which
from agent_orchestrator.surfaces.web.repositories import Repository

LOOK_S = 0.05
OWNERS_EVERY = 60
"""Looks between two at which of the runs somebody drives: a killed process says nothing."""
TROUBLE_S = 2.0
BEHIND_MAX = 5_000
"""Rows that a reader who comes back may have missed; after more it loads everything again."""


class Feed:
    """The runs of a repository that moved, by the number of the look that saw it."""

    def __init__(self, repository: Repository, tell: Callable[[], None]) -> None:
        self.repository, self._tell_readers = repository, tell
        self.number = 0
        self.resets = 0
        """Counts the times that everything known is void."""
        self.problem: str | None = None
        self._moved: OrderedDict[str, int] = OrderedDict()
        self._readers = 0
        self._task: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()
        """Set once the tail is read: from then on nothing is missed."""
        self._tail: Tail | None = None
        self._absent = False
        self._owners: dict[str, str | None] = {}
        self._looks = 0

    def open(self) -> None:
        """Count a reader in; the first one starts the feed."""
        self._readers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    def close(self) -> None:
        """Count a reader out; with the last one the feed ends."""
        self._readers -= 1
        if self._readers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None
            self.ready = asyncio.Event()
            self._tail = None

    def moved_since(self, number: int) -> list[str]:
        """Return the runs that moved after a look."""
        found = []
        for run, at in reversed(self._moved.items()):
            if at <= number:
                break
            found.append(run)
        return found

    async def _follow(self) -> None:
        while True:
            try:
                runs, anew = await self.repository.read(self._look)
                trouble = None
            except OrcError as error:
                runs, anew, trouble = [], False, str(error)
            if runs or anew or trouble != self.problem:
                self._tell(runs, anew=anew, trouble=trouble)
            self.ready.set()
            await asyncio.sleep(LOOK_S if trouble is None else TROUBLE_S)

    def _tell(self, runs: list[str], *, anew: bool, trouble: str | None) -> None:
        self.number += 1
        self.problem = trouble
        self.resets += anew
        for run in runs:
            self._moved[run] = self.number
            self._moved.move_to_end(run)
        self._tell_readers()

    def _look(self, _: Orchestrator) -> tuple[list[str], bool]:
        """Return the runs that moved since the last look, and whether another store stands at this place; in its thread."""
        anew = self.repository.open_again()
        orchestrator = self.repository.orchestrator()
        if not orchestrator.has_store:
            self._tail, self._absent = None, True
            return [], anew
        if anew or self._tail is None:
            self._tail, self._owners = Tail(orchestrator.store), _find_owners(orchestrator)
            anew, self._absent = anew or self._absent, False
            return [], anew
        runs: list[str] = list(dict.fromkeys(row.run for row in self._tail.read()))
        self._looks += 1
        if self._looks % OWNERS_EVERY == 0:
            runs += [run for run in self._look_at_owners(orchestrator) if run not in runs]
        return runs, False

    def _look_at_owners(self, orchestrator: Orchestrator) -> list[str]:
        owners = _find_owners(orchestrator)
        # Of one that is new since the last look a page may believe that somebody drives it.
        moved = [run for run, owner in owners.items() if self._owners.get(run, "somebody" if owner is None else owner) != owner]
        self._owners = owners
        return moved

    def driven(self) -> dict[str, str]:
        """Return the processes that drive runs, by the runs' keys."""
        return {self.repository.key(run): owner for run, owner in self._owners.items() if owner is not None}

    async def catch_up(self, place: TailPlace | None) -> list[str] | None:
        """Return the runs that moved since a place, which a reader brings; None if it has to load everything again."""

        def read(orchestrator: Orchestrator) -> list[str] | None:
            if not orchestrator.has_store:
                return [] if place is None else None
            tail = Tail(orchestrator.store, place)
            if place is None or tail.lost:
                return None
            rows = tail.read(BEHIND_MAX)
            return None if len(rows) == BEHIND_MAX else list(dict.fromkeys(row.run for row in rows))

        return await self.repository.read(read)


def _find_owners(orchestrator: Orchestrator) -> dict[str, str | None]:
    return {run.id: orchestrator.owner(run) for run in orchestrator.runs(Which(ended=False))}


async def find_place(repository: Repository) -> str:
    """Return the newest place of a repository's journals, as text."""

    def read(orchestrator: Orchestrator) -> str:
        known = orchestrator.has_store
        return str(TailPlace(*orchestrator.store.newest())) if known else "-"

    return await repository.read(read)


def read_rows(orchestrator: Orchestrator, repository: Repository, runs: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return some runs as lines of the overview, and the keys of those that are gone."""
    rows, gone = [], []
    for one in runs:
        run = orchestrator.store.run(one)
        if run is None:
            gone.append(repository.key(one))
        else:
            owner = None if run.summary.ended else orchestrator.owner(run)
            rows.append(repository.row(run, owner, orchestrator.store.costs(run.id).get(run.id)))
    return rows, gone
