"""When which launch is looked at: one timer and one queue for all of them, in slices that never stall the loop."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from functools import partial

from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.process.watched import Watched
from agent_orchestrator.engine.slices import SliceQueue

WAKE_GAP_S = 0.05
"""Launches due this close together are looked at in one wake-up."""


class Agenda:
    """Calls `look` for each launch when it is due; the latest date given to a launch is the one that holds."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, look: Callable[[Watched], None]) -> None:
        self._clock, self._loop, self._look = clock, loop, look
        self._heap: list[tuple[float, int, Watched]] = []
        self._pushed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self._looks = SliceQueue(loop, clock)
        """Launches that are due: no end waits for more than a slice of them."""
        self.slices = SliceQueue(loop, clock)
        """Ends to take soon: a thousand at once are taken in slices."""

    def set(self, watched: Watched, wait_s: float) -> None:
        """Looks at it after this time, and not before."""
        watched.due_s = self._clock.monotonic_s() + max(wait_s, 0.001)
        self._pushed += 1
        heapq.heappush(self._heap, (watched.due_s, self._pushed, watched))
        self._arm()

    def drop(self, watched: Watched) -> None:
        """Looks at it no more, until it is given another date."""
        watched.due_s = 0.0

    def close(self) -> None:
        """Forgets everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
        self._looks.clear()
        self.slices.clear()

    def _arm(self) -> None:
        due_s = self._heap[0][0]
        if self._timer is not None:
            if self._timer_s <= due_s:
                return
            self._timer.cancel()
        self._timer_s = due_s
        self._timer = self._loop.call_later(max(due_s - self._clock.monotonic_s(), 0.0), self._wake)

    def _wake(self) -> None:
        self._timer = None
        until_s = self._clock.monotonic_s() + WAKE_GAP_S
        while self._heap and self._heap[0][0] <= until_s:
            due_s, _, watched = heapq.heappop(self._heap)
            self._looks.add(partial(self._take, watched, due_s))
        if self._heap:
            self._arm()

    def _take(self, watched: Watched, due_s: float) -> None:
        if watched.due_s == due_s and not watched.over:
            self._look(watched)
