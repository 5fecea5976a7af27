"""Group commit: everything appended in one turn of the event loop shares one transaction and one fsync.

It commits on the loop itself: handing over to a thread cost more than the fsync for a single run and gained nothing for
many. Only a store that may be away is written to in a thread, one batch after the other: whatever is ready meanwhile shares the
next one, and agents are looked after while a server is gone. The choice is hidden behind `append`. A run that has nobody to share
with waits in place, for a server, too, as long as that is quick: a thread there and back costs half of what such a server takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_orchestrator.engine.threads import Threads
from agent_orchestrator.errors import Conflict, StoreAway
from agent_orchestrator.store.port import Append, Store

LATE_S = 5.0
QUICK_S = 0.005
"""A server that took less for the last commit, a thread included, is waited for in place."""

Batch = list[tuple[Append, asyncio.Future[None]]]


class Committer:
    """Collects appends and commits them once per turn, or once the batch before is known to be written."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        late: Callable[[], None] = lambda: None,
        *,
        quick_s: float = QUICK_S,
    ) -> None:
        self._store, self._loop, self._late, self._quick_s = store, loop, late, quick_s
        self._batch: Batch = []
        self._threads = Threads(loop) if store.remote else None
        self._under_way = False
        self._is_quick = self._threads is None

    def append(self, part: Append) -> asyncio.Future[None]:
        """Durable when the future is done; it fails with Conflict for this run alone, with anything else for all."""
        done: asyncio.Future[None] = self._loop.create_future()
        if not self._batch and not self._under_way:
            self._loop.call_soon(self._commit_waiting)
        self._batch.append((part, done))
        return done

    @property
    def is_idle(self) -> bool:
        """True while nothing waits for the commit of this turn, and one could be made in place."""
        return not self._batch and not self._under_way and self._is_quick

    def append_now(self, part: Append) -> asyncio.Future[None] | None:
        """Append at once, for whoever has nobody to share a commit with; raises what went wrong.

        Where something waits already, or no answer comes at once, return what to wait for.
        """
        if not self.is_idle:
            return self.append(part)
        try:
            answer = self._store.append_at_once(part)
        except StoreAway:
            if self._threads is None:
                raise
            self._is_quick = False
            done: asyncio.Future[None] = self._loop.create_future()
            self._commit([(part, done)])
            return done
        if answer is not None:
            raise answer
        return None

    def close(self) -> None:
        """Wait for what is being written."""
        if self._threads is not None:
            self._threads.close()

    def _commit_waiting(self) -> None:
        batch, self._batch = self._batch, []
        self._commit(batch)

    def _commit(self, batch: Batch) -> None:
        if self._threads is None:
            self._settle(batch, self._write(batch))
            return
        self._under_way = True
        began = self._loop.time()
        late = self._loop.call_later(LATE_S, self._late)

        def land(answers: list[Conflict | None] | Exception) -> None:
            late.cancel()
            self._under_way = False
            self._is_quick = self._loop.time() - began < self._quick_s
            self._settle(batch, answers)
            if self._batch:
                self._commit_waiting()

        self._threads.run(lambda: self._write(batch), land)

    def _write(self, batch: Batch) -> list[Conflict | None] | Exception:
        try:
            return self._store.append([part for part, _ in batch])
        except Exception as error:  # whatever it is, nobody may wait for ever: an unknown one ends the process
            return error

    def _settle(self, batch: Batch, answers: list[Conflict | None] | Exception) -> None:
        several = [answers] * len(batch) if isinstance(answers, Exception) else answers
        for (_, done), answer in zip(batch, several, strict=True):
            if done.done():
                continue
            if answer is None:
                done.set_result(None)
            else:
                done.set_exception(answer)
