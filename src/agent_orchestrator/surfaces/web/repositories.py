"""The repositories that the page shows: each has one thread that reads its store, so that nothing waits for a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from agent_orchestrator.config import Settings
from agent_orchestrator.core.who import Surface
from agent_orchestrator.errors import OrcError, UnknownRun
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.web.analytics import Analytics
from agent_orchestrator.surfaces.web.watched import Moment, WatchedRun, WatchedRuns

Given = ParamSpec("Given")
Found = TypeVar("Found")

AGAIN_S = 5.0
"""The time between two tries to open a store that could only be read."""
SEPARATOR = ":"
"""Between the repository and the run in a key; no id has it."""


class Repository:
    """One repository, its store read by one thread."""

    def __init__(self, settings: Settings, name: str, *, alone: bool) -> None:
        self.settings, self.name, self._alone = settings, name, alone
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"read-{name}")
        self._orchestrator: Orchestrator | None = None
        self._inode, self._tried_s = 0, 0.0
        self.watched = WatchedRuns()
        self.analytics = Analytics()

    async def read(
        self, function: Callable[Concatenate[Orchestrator, Given], Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """Call a function that reads the store, in the thread that may."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: function(self.orchestrator(), *given, **named)
        )

    def orchestrator(self) -> Orchestrator:
        """Return the runs of the repository, for the thread that reads."""
        if self._orchestrator is None:
            self._orchestrator = self.make_orchestrator()
        return self._orchestrator

    def open_again(self) -> bool:
        """Open the store anew if another file stands at its place, or it could not be written; return True if it was."""
        if self._orchestrator is None:
            return False
        if self._orchestrator.address is not None:
            return False  # its store connects anew by itself
        try:
            inode = (self.settings.folder / "orc.db").stat().st_ino
        except OSError:
            inode = -1
        known, self._inode = self._inode, inode
        now_s = self._orchestrator.clock.monotonic_s()
        if known in (0, inode) and not (self._is_unwritable() and now_s - self._tried_s >= AGAIN_S):
            return False
        self._tried_s = now_s
        self._orchestrator.close()
        self._orchestrator = None
        self.watched.forget()
        return True

    def _is_unwritable(self) -> bool:
        return self._inode > 0 and self._orchestrator is not None and self._orchestrator.store.unwritable is not None

    def make_orchestrator(self) -> Orchestrator:
        """Return the runs of the repository, for another thread."""
        return Orchestrator(settings=self.settings, surface=Surface.WEB)

    def close(self) -> None:
        """End the thread."""
        self._thread.submit(lambda: self._orchestrator.close() if self._orchestrator is not None else None)
        self._thread.shutdown(wait=True)

    def key(self, run: str) -> str:
        """Return the name of a run in addresses."""
        return run if self._alone else f"{self.name}{SEPARATOR}{run}"

    def row(self, run: StoredRun, owner: str | None, cost_usd: float | None) -> dict[str, Any]:
        """Return a run as a line of the overview."""
        facts = run_facts(run, owner)
        more = {
            "updated_us": run.updated_us,
            "kept": run.id != run.context.run,
            "cost_usd": cost_usd,
            "queued": bool(run.context.remote and not run.summary.ended),
        }
        return {"key": self.key(run.id), "repo": self.name, **facts, **more}


class Looked(NamedTuple):
    """A run that is looked at, in the thread that may."""

    orchestrator: Orchestrator
    repository: Repository
    watched: WatchedRun
    moment: Moment


class Repositories:
    """All of them, found by the keys of their runs."""

    def __init__(self, settings: Sequence[Settings]) -> None:
        names = _name([one.home for one in settings])
        alone = len(settings) == 1
        self.all = [Repository(one, name, alone=alone) for one, name in zip(settings, names, strict=True)]

    def find(self, key: str) -> tuple[Repository, str]:
        """Return the repository and the run that a key names; raise UnknownRun."""
        name, colon, run = key.rpartition(SEPARATOR)
        found = [one for one in self.all if one.name == name] if colon else self.all[:1] if len(self.all) == 1 else []
        if not found:
            raise UnknownRun(run=key, repo=", ".join(str(one.settings.home) for one in self.all))
        return found[0], run

    def find_quietly(self, key: str) -> tuple[Repository | None, str]:
        """Return the repository and the run that a key names; no repository for one that names none."""
        try:
            return self.find(key)
        except UnknownRun:
            return None, key

    async def look(self, key: str, function: Callable[[Looked], Found], row: int | None = None) -> Found:
        """Call a function about the run of a key, as of now or of a row; raise UnknownRun."""
        repository, run = self.find(key)

        def read(orchestrator: Orchestrator) -> Found:
            watched = repository.watched.look(orchestrator, run)
            moment = watched.now() if row is None else watched.at(orchestrator, row)
            return function(Looked(orchestrator, repository, watched, moment))

        return await repository.read(read)

    def close(self) -> None:
        """End all threads."""
        for one in self.all:
            one.close()


def find_run(orchestrator: Orchestrator, run: str) -> StoredRun:
    """Return a run by its exact id; raise UnknownRun."""
    found = orchestrator.known(run)
    if found is None:
        raise UnknownRun(run=run, repo=orchestrator.settings.home)
    return found


def _name(homes: Sequence[Path]) -> list[str]:
    """Return a short name for each folder: its own, with a number where another one has it, too."""
    names: list[str] = []
    for home in homes:
        plain = "".join(char if char.isalnum() or char in "._-" else "-" for char in home.name) or "repo"
        number = 1
        name = plain
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names


def describe(orchestrator: Orchestrator) -> dict[str, Any]:
    """Return a repository in a few facts, and what is wrong with its store."""
    try:
        runs, problem = orchestrator.count().total, None
        if runs and (unwritable := orchestrator.store.unwritable) is not None:
            problem = f"{unwritable} Until then runs can be looked at, and nothing else."
    except OrcError as error:
        runs, problem = 0, str(error)
    shared = str(orchestrator.address) if orchestrator.address is not None else None
    return {"path": str(orchestrator.settings.home), "runs": runs, "problem": problem, "store": shared}
