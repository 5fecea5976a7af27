"""Spreads bursts of short work over turns of the event loop, so that starting or ending 1,000 agents stalls nobody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from agent_orchestrator.engine.clock import Clock

SLICE_S = 0.005


class Sliced:
    """A queue of actions, run for a few milliseconds per turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop, self._clock = loop, clock
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, action: Callable[[], None]) -> None:
        """Runs the action soon, after those added before it."""
        if not self._queue:
            self._loop.call_soon(self._run)
        self._queue.append(action)

    def _run(self) -> None:
        until = self._clock.monotonic_s() + SLICE_S
        while self._queue:
            # Taken off only after it ran: an action added meanwhile must not schedule a second run.
            self._queue[0]()
            self._queue.popleft()
            if self._clock.monotonic_s() >= until:
                break
        if self._queue:
            self._loop.call_soon(self._run)
