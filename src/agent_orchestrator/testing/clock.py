"""Time that jumps: waiting costs nothing, and a day-long run is tested in milliseconds.

`run_jumping(coroutine, clock)` runs a coroutine on a loop whose timers fire at once, in order, as the clock jumps ahead.
`SteppedLoop` is a loop that does one turn per call: the simulation decides which process acts next.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_US = 1_750_000_000_000_000


class FakeClock:
    """A wall clock that can be set and a monotonic clock that only goes on."""

    def __init__(self, start_us: int = START_US) -> None:
        self._wall_us, self._passed_s = float(start_us), 0.0

    def now_us(self) -> int:
        """Return the wall-clock time."""
        return int(self._wall_us)

    def monotonic_s(self) -> float:
        """Return the seconds since the clock was made."""
        return self._passed_s

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._passed_s += seconds
        self._wall_us += seconds * 1e6

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock, forward or back; the monotonic clock knows nothing of it."""
        self._wall_us += seconds * 1e6


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for a timer, jumps to it."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everything waits, and for nothing that time can bring")
        if not ready and timeout:
            self._clock.advance(timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, selector: selectors.BaseSelector, clock: FakeClock) -> None:
        self._fake_clock = clock
        super().__init__(selector)

    def time(self) -> float:
        return self._fake_clock.monotonic_s()


def run_jumping(main: Coroutine[Any, Any, T], clock: FakeClock) -> T:
    """Run a coroutine to its end in no time."""
    with asyncio.Runner(loop_factory=lambda: _Loop(_JumpingSelector(clock), clock)) as runner:
        return runner.run(main)


class _SteppingSelector(selectors.SelectSelector):
    """A selector that notes how long the loop would wait, and lets it go for one turn only."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted_s: float | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.wanted_s = timeout
        assert self.loop is not None
        self.loop.stop()
        return []


class SteppedLoop(_Loop):
    """An event loop that is moved by hand, one turn at a time."""

    def __init__(self, clock: FakeClock) -> None:
        self._stepping = _SteppingSelector()
        super().__init__(self._stepping, clock)
        self._stepping.loop = self
        self.set_exception_handler(self._remember)
        self.error: BaseException | None = None

    def _remember(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        self.error = self.error or about.get("exception")

    def step(self) -> float | None:
        """Take one turn. 0 means it did something; else the seconds until it would, or None for never."""
        self.run_forever()
        if self.error is not None:
            raise self.error
        return self._stepping.wanted_s
