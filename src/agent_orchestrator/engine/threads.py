"""Long work in threads, so that the event loop goes on; in place where the machine has no thread left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """The threads of one engine.

    The event loop's own are of no use here: where none can be started it forgets what it queued, and cannot be closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do it once, in a thread if there is one to be had; the answer reaches the loop."""
        answer: Future[T] = Future()
        taken = threading.Lock()

        def once() -> None:
            if not taken.acquire(blocking=False):
                return
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)

        self._pool = self._pool or ThreadPoolExecutor(thread_name_prefix="orc")
        try:
            self._pool.submit(once)
        except RuntimeError:  # Queued all the same: whoever comes first does it.
            once()
        return asyncio.wrap_future(answer, loop=self._loop)

    def close(self) -> None:
        """Wait for what is being done."""
        if self._pool is not None:
            self._pool.shutdown()
