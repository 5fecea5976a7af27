"""Spreads bursts of short work over turns of the event loop, so that starting or ending 1,000 agents stalls nobody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from agent_orchestrator.engine.clock import Clock

SLICE_S = 0.005
"""Time that queued work goes on before the loop's other tasks get their turn."""


class SliceQueue:
    """A queue of actions, run in order for a few milliseconds per turn; one that raises does not hold up the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop, self._clock = loop, clock
        self._actions: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, action: Callable[[], None]) -> None:
        """Run the action soon, after those added before it."""
        self._actions.append(action)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def now(self, action: Callable[[], None]) -> None:
        """Run the action before this returns, and what it adds, if it is the first of this turn; soon, if not.

        The end of one agent and the start of the next meet nobody here, and have no turn of the loop to wait for.
        """
        is_first = not self._scheduled
        self.add(action)
        if is_first:
            self._work()

    def clear(self) -> None:
        """Forget all actions that have not run."""
        self._actions.clear()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._scheduled = bool(self._actions)
            if self._scheduled:
                self._loop.call_soon(self._run)

    def _work(self) -> None:
        until_s = self._clock.monotonic_s() + SLICE_S
        while self._actions:
            self._actions.popleft()()
            if self._clock.monotonic_s() >= until_s:
                break
