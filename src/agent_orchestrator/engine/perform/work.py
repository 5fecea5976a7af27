"""The part that all works share: the effect, the driver, and the promise to call `finished` once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from agent_orchestrator.core.effects import Effect
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Outcome

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

Finished = Callable[[Outcome | None], None]


class Leftover(msgspec.Struct, frozen=True):
    """A launch that lives though nobody wants it any more: its stop was interrupted by a crash."""

    id: EffectId
    unit: str


class EffectWork(Protocol):
    """One effect in flight."""

    @property
    def effect(self) -> Effect | Leftover:
        """Return what is being done."""

    def start(self, *, halt: bool) -> None:
        """Begins, adopts or collects; with `halt`, nothing may be started and what lives is stopped."""

    def stop(self) -> None:
        """The effect is no longer wanted."""

    def abandon(self) -> None:
        """This process leaves; whatever lives is for the next one."""


class Waiting:
    """A wait that costs a timer: looked at again at an interval until it is over."""

    def __init__(self, driver: Driver, finished: Finished) -> None:
        self.driver, self._finished = driver, finished
        self._timer: asyncio.TimerHandle | None = None

    def start(self, *, halt: bool) -> None:
        """Looks for the first time."""
        self._look()

    def _look(self) -> None:
        raise AssertionError("each kind of wait looks for itself")

    def look_again(self, after_s: float) -> None:
        """Looks again later."""
        self._timer = self.driver.engine.loop.call_later(after_s, self._look)

    def over(self, outcome: Outcome) -> None:
        """The wait is over."""
        self._finished(outcome)

    def stop(self) -> None:
        """Cancels the wait; it has no outcome."""
        self.abandon()
        self._finished(None)

    def abandon(self) -> None:
        """Forgets the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def home(self, path: str) -> Path:
        """A path below the run's home."""
        return Path(self.driver.run.context.home, path)
