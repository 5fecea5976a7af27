"""Group commit: everything appended in one turn of the event loop shares one transaction and one fsync.

It commits on the loop itself. Handing over to a thread cost more than the fsync for a single run and gained nothing
for many; the choice is hidden behind `append`.
"""

from __future__ import annotations

import asyncio

from agent_orchestrator.store.port import Append, Store


class Committer:
    """Collects appends and commits them once per turn."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop
        self._batch: list[tuple[Append, asyncio.Future[None]]] = []

    def append(self, part: Append) -> asyncio.Future[None]:
        """Durable when the future is done; it fails with Conflict for this run alone, with anything else for all."""
        done: asyncio.Future[None] = self._loop.create_future()
        if not self._batch:
            self._loop.call_soon(self._commit)
        self._batch.append((part, done))
        return done

    @property
    def is_idle(self) -> bool:
        """True while nothing waits for the commit of this turn."""
        return not self._batch

    def append_now(self, part: Append) -> None:
        """Append at once, for whoever has nobody to share a commit with; raises what went wrong."""
        assert not self._batch, "what waits comes first"
        answer = self._store.append([part])[0]
        if answer is not None:
            raise answer

    def _commit(self) -> None:
        batch, self._batch = self._batch, []
        try:
            answers = self._store.append([part for part, _ in batch])
        except Exception as error:  # whatever it is, nobody may wait for ever: an unknown one ends the process
            for _, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), answer in zip(batch, answers, strict=True):
            if done.done():
                continue
            if answer is None:
                done.set_result(None)
            else:
                done.set_exception(answer)
