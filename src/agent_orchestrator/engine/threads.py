"""Long work in threads, so that the event loop goes on; in place where the machine has no thread left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
        answer: asyncio.Future[T] = self._loop.create_future()

        def known() -> Callable[[], None]:
            try:
                value = work()
            except BaseException as error:
                return partial(answer.set_exception, error)
            return partial(answer.set_result, value)

        def settle(tell: Callable[[], None]) -> None:
            if not answer.done():
                tell()

        self.run(known, settle)
        return answer

    def run(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do something once that never raises, in a thread if there is one to be had; go on with its answer in the loop.

        Without a future on the way, each of which costs a turn of the loop: a commit goes this way, and a run waits for it.
        """
        taken = threading.Lock()

        def once() -> None:
            if taken.acquire(blocking=False):
                answer = work()
                with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits for it.
                    self._loop.call_soon_threadsafe(then, answer)

        self._pool = self._pool or ThreadPoolExecutor(thread_name_prefix="orc")
        try:
            self._pool.submit(once)
        except RuntimeError:  # Queued all the same: whoever comes first does it.
            once()

    def close(self) -> None:
        """Wait for what is being done."""
        if self._pool is not None:
            self._pool.shutdown()
