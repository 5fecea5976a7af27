"""Makes the world match what a run wants done: one slot per unit, in flight = starting | running | stopping.

A unit's slot stays occupied until what it did is really over; only then does the next effect of that unit start.
After a crash the same code runs over everything that was wanted, with survivors adopted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agent_orchestrator.core.effects import ACTIVE, Effect, RunAgent
from agent_orchestrator.core.inputs import Outcome
from agent_orchestrator.engine.perform import Work, begin

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


class Slots:
    """What one run has in flight."""

    def __init__(self, driver: Driver, *, same_boot: bool) -> None:
        self._driver = driver
        self._same_boot = same_boot
        self._works: dict[str, Work] = {}
        self._freed: dict[str, None] = {}
        self._halting = False
        self._inherited: set[str] = {effect.id for effect in driver.state.doing}
        """Effects wanted before this process began: an earlier one may have started them."""
        self._first = True
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many programs are in flight."""
        return self._busy

    def agent_of(self, effect: str) -> str:
        """The name of the agent behind an effect in flight."""
        work = self._works.get(effect.split("/")[1])
        return work.effect.agent.name if work is not None and isinstance(work.effect, RunAgent) else "unknown"

    def match(self, changed: Iterable[str], *, halting: bool) -> None:
        """Starts and stops the difference; everything is looked at when a halt begins or ends, and at first."""
        units = dict.fromkeys([*self._freed, *changed])
        self._freed.clear()
        if self._first or halting != self._halting:
            self._first, self._halting = False, halting
            units.update(dict.fromkeys(effect.unit for effect in self._driver.state.doing))
        for unit in units:
            self._match(unit)

    def _match(self, unit: str) -> None:
        wanted: Effect | None = self._driver.state.doing.of(unit)
        work = self._works.get(unit)
        halt = self._halting and isinstance(wanted, ACTIVE)
        if work is None:
            if wanted is not None:
                self._begin(wanted, halt=halt)
        elif wanted is None or work.effect.id != wanted.id or halt:
            work.stop()

    def _begin(self, effect: Effect, *, halt: bool) -> None:
        inherited = effect.id in self._inherited
        self._inherited.discard(effect.id)
        work = begin(self._driver, effect, self._finisher(effect), inherited=inherited, same_boot=self._same_boot)
        self._works[effect.unit] = work
        self._busy += isinstance(effect, ACTIVE)
        work.start(halt=halt)

    def _finisher(self, effect: Effect) -> Callable[[Outcome | None], None]:
        """What a work calls when nothing of it is left; the outcome is None when it was a mere wait, cancelled."""

        def finished(outcome: Outcome | None) -> None:
            work = self._works.get(effect.unit)
            if work is None or work.effect.id != effect.id:
                return
            del self._works[effect.unit]
            self._busy -= isinstance(effect, ACTIVE)
            self._freed[effect.unit] = None
            if outcome is None:
                self._match(effect.unit)
            else:
                self._driver.deliver(outcome)

        return finished

    def abandon(self) -> None:
        """Lets go of everything in flight without stopping it: timers end, programs live on."""
        for work in list(self._works.values()):
            work.abandon()
        self._works.clear()
