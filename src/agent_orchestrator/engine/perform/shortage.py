"""The wait of a work for a machine that is short of something: growing pauses, said to people, and never an attempt.

An agent that cannot start for longer than a moment is held, so that every view of the run says what it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agent_orchestrator.core.effects import Effect, KeptTree, RunAgent
from agent_orchestrator.core.events import HoldEnded, UnitHeld
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.retry import shortage_pause_s
from agent_orchestrator.errors import OrcError

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

T = TypeVar("T")

HELD_AFTER = 3
"""So many shortages in a row are worth a fact; fewer pass before anybody looks."""


class ShortageWait:
    """The pauses of one work."""

    def __init__(self, driver: Driver, effect: Effect) -> None:
        self._driver, self._effect = driver, effect
        self._tries = 0
        self._held = False
        self._timer: asyncio.TimerHandle | None = None

    def later(self, problem: Exception | str, action: Callable[[], None], *, starts: bool = False) -> None:
        """Does it after a pause; `starts` is for what keeps the effect from starting."""
        why = f"{problem.strerror}" if isinstance(problem, OSError) else str(problem).rstrip(".")
        engine, unit = self._driver.engine, self._effect.unit
        pause_s = shortage_pause_s(self._tries)
        self._tries += 1
        engine.notify(
            self._driver, f"{unit} has to wait, the machine is short of something: {why}. Trying again in {pause_s:g} s."
        )
        if starts and self._tries >= HELD_AFTER and not self._held and isinstance(self._effect, RunAgent):
            self._held = True
            reason = f"the machine is short of something: {why}"
            self._driver.note(UnitHeld(unit=unit, hold=Hold(effect=self._effect.id, why=HoldReason.SHORTAGE, reason=reason)))
        self._timer = engine.loop.call_later(pause_s, self._again, action)

    def _again(self, action: Callable[[], None]) -> None:
        self._timer = None  # It is on its way: a stop that comes now must not send it a second time.
        self._driver.engine.slices.add(action)

    def end(self) -> None:
        """The machine had what a start takes."""
        if self._held:
            self._held = False
            self._driver.note(HoldEnded(unit=self._effect.unit, effect=self._effect.id))

    def cancel(self) -> bool:
        """Forgets what was to be done; False when nothing was waiting."""
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = None
        return True


def caught(work: Callable[[], T]) -> T | OrcError | OSError:
    """Return what the work does, or the error that it meets."""
    try:
        return work()
    except (OrcError, OSError) as error:
        return error


def problem_of(kept: KeptTree | Exception | None) -> KeptTree | None:
    """Return a tree as it was kept; for one that could not be kept for a shortage, why."""
    return KeptTree(problem=str(kept).rstrip(".")) if isinstance(kept, Exception) else kept
