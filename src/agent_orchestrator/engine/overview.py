"""Writes documents that span runs, such as a registry: under a lock, from a fresh read of the store, never torn.

Whoever made a fact durable writes after it; whoever writes last has read everything. A process that drives such a run
also writes at a heartbeat, so that readers of the file alone can tell the living from the dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from agent_orchestrator.beneath import open_own
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Document, System
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.owners import Owners
from agent_orchestrator.errors import STORE_PASSES
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.projections.writer import encode_document
from agent_orchestrator.store.port import Store, Which

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

HEARTBEAT_S = 60.0
BUSY_RETRY_S = 0.02


class Overviews:
    """The documents over all runs of one store."""

    def __init__(self, store: Store, owners: Owners, folder: Path, clock: Clock) -> None:
        self._store, self._owners, self._folder, self._clock = store, owners, folder, clock

    def write(self, system: System, home: Path, *, wait: bool = True) -> bool:
        """Writes them; False when another process is at it and we do not wait."""
        if system.overview is None:
            return True
        with self._locked(system.name, wait=wait) as mine:
            if mine:
                runs = [run for run in self._store.runs(Which(system=system.name)) if run.context.home == str(home)]
                now_us = self._clock.now_us()
                for document in system.overview(runs, self._is_driven, now_us):
                    target = home / document.path
                    put = document if document.onto is None else _put_onto(document, document.onto, home)
                    if put is not None:
                        write_whole(home, target, encode_document(put))
        return mine

    def _is_driven(self, run: RunId) -> bool:
        return self._owners.owner_of(run) is not None

    @contextlib.contextmanager
    def _locked(self, name: str, *, wait: bool) -> Iterator[bool]:
        lock = open_own(self._folder, self._folder / f"{name}s.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)


def _put_onto(document: Document, onto: Callable[[bytes], Any], home: Path) -> Document | None:
    try:
        body = onto(read_bounded(home / document.path, EDIT_LIMIT_BYTES, root=home))
    except OSError:
        return None  # There is none, or it is not ours to write.
    return None if body is None else msgspec.structs.replace(document, body=body)


class OverviewKeeper:
    """Keeps the overview in step while one run is driven: after each change, and at the heartbeat."""

    def __init__(self, driver: Driver, overviews: Overviews) -> None:
        self._driver, self._overviews = driver, overviews
        self._shown = b""
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Something became durable: write if the overview says it."""
        facts = hashlib.sha256(repr(self._driver.summary().facts).encode()).digest()
        if facts != self._shown:
            self._shown = facts
            self._try()

    def _try(self) -> None:
        self.close()
        later_s = HEARTBEAT_S
        try:
            if not self._overviews.write(self._driver.system, self._driver.home, wait=False):
                later_s = BUSY_RETRY_S
        except (OSError, *STORE_PASSES) as error:
            self._driver.engine.notify(self._driver, f"The overview could not be written: {error}.")
        self._timer = self._driver.engine.loop.call_later(later_s, self._try)

    def close(self) -> None:
        """No more heartbeats."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
