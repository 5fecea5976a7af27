"""Makes the world match what a run wants done: one slot per unit, in flight = starting | running | stopping.

A unit's slot stays occupied until what it did is really over; only then does the next effect of that unit start.
After a crash the same code runs over everything that was wanted, with survivors adopted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agent_orchestrator.core.effects import ACTIVE, Effect, RunAgent, RunCheck
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import Outcome
from agent_orchestrator.engine.journal import effects_of
from agent_orchestrator.engine.launches import Standing
from agent_orchestrator.engine.perform import EffectWork, begin
from agent_orchestrator.engine.perform.agent import AgentWork
from agent_orchestrator.engine.perform.leftover import LeftoverWork
from agent_orchestrator.engine.perform.played import PlayedWork
from agent_orchestrator.engine.perform.work import Leftover

if TYPE_CHECKING:
    from agent_orchestrator.core.doing import Doing
    from agent_orchestrator.engine.driver import Driver


PROGRAMS = frozenset({*ACTIVE, Leftover})


class Slots:
    """The effects of one run that are in flight, by unit."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._works: dict[str, EffectWork] = {}
        self._freed: dict[str, None] = {}
        self._halting = False
        self._inherited: set[EffectId] = set()
        """Effects that another process may have started."""
        self.inherit()
        self._first = True
        self.busy = 0
        """The number of programs in flight."""

    def inherit(self) -> None:
        """Whatever is wanted and not in flight here came from another process, which may have started all but what is held.

        What is held for a shortage it tried to start again and again: the start comes before the fact that the hold is over.
        """
        doing = self._driver.state.doing
        held = {hold.effect for hold in doing.holds.values() if hold.why is not HoldReason.SHORTAGE}
        self._inherited = {effect.id for effect in doing if effect.unit not in self._works and effect.id not in held}

    def leftovers(self) -> list[EffectId]:
        """Launches that nobody wants and whose end is no fact: a crash came between what dropped them and that."""
        driver = self._driver
        return [effect for effect in driver.engine.launches.unsettled(driver.run.id) if not driver.state.doing.wants(effect)]

    def _end_leftovers(self) -> None:
        """Stops what is left of earlier processes, and what this one's first facts dropped before it was adopted.

        Each keeps its unit occupied until it is gone. Its outcome comes late; what it consumed counts, and secrets are taken
        out of its output, as of any other.
        """
        driver, left = self._driver, self.leftovers()
        known = effects_of(driver.engine.store, driver.system, driver.run, left) if left else {}
        for name in left:
            effect = known.get(name)
            if isinstance(effect, RunAgent | RunCheck):
                self._hold(begin(driver, effect, self._finisher(name, effect.unit), inherited=True, same_boot=False), halt=True)
            else:
                self._hold(LeftoverWork(driver, name, self._finisher(name, unit_of(name))))

    def has(self, unit: str) -> bool:
        """Say whether something of a unit is in flight."""
        return unit in self._works

    def agent_of(self, effect: EffectId) -> str:
        """The name of the agent behind an effect in flight."""
        work = self._works.get(unit_of(effect))
        return work.effect.agent.name if work is not None and isinstance(work.effect, RunAgent) else "unknown"

    def agent_effect(self, effect: EffectId) -> RunAgent | None:
        """The effect of an agent in flight."""
        work = self._works.get(unit_of(effect))
        return work.effect if work is not None and isinstance(work.effect, RunAgent) and work.effect.id == effect else None

    def stop_agents(self, failure: Failure) -> None:
        """Stops all agents at work, for a reason of the engine's own."""
        for work in list(self._works.values()):
            if isinstance(work, AgentWork | PlayedWork):
                work.stop_for(failure)

    def match(self, changed: Iterable[str], *, halting: bool) -> None:
        """Starts and stops the difference; everything is looked at when a halt begins or ends, and at first."""
        units = dict.fromkeys([*self._freed, *changed])
        self._freed.clear()
        if self._first:
            self._end_leftovers()
        if self._first or halting != self._halting:
            self._first, self._halting = False, halting
            units.update(dict.fromkeys(effect.unit for effect in self._driver.state.doing))
        for unit in units:
            self._match(unit)

    def _match(self, unit: str) -> None:
        doing: Doing = self._driver.state.doing
        wanted, work = doing.of(unit), self._works.get(unit)
        told = bool(doing.interrupted) and wanted is not None and wanted.id in doing.interrupted
        halt = (self._halting or told) and isinstance(wanted, ACTIVE)
        if work is None:
            if wanted is not None and (halt or self._may_begin(wanted)):
                self._begin(wanted, halt=halt)
        elif wanted is None or work.effect.id != wanted.id or halt:
            work.stop()

    def _may_begin(self, effect: Effect) -> bool:
        """Say whether rate limits and budgets let an agent start; one that was started before is adopted whatever they say."""
        admission = self._driver.admission
        if type(effect) is not RunAgent or not admission.watches(effect):
            return True
        if effect.id in self._inherited:
            standing = self._driver.engine.launches.standing(effect.id, same_boot=self._is_of_this_boot(effect))
            if standing is not Standing.NEW:
                admission.adopt(effect)
                return True
        return admission.admits(effect)

    def _is_of_this_boot(self, effect: Effect) -> bool:
        return self._driver.state.doing.boot_of(effect.unit) in (None, self._driver.engine.boot)

    def _begin(self, effect: Effect, *, halt: bool) -> None:
        inherited = effect.id in self._inherited
        if inherited:
            self._inherited.discard(effect.id)
        same_boot = not inherited or self._is_of_this_boot(effect)  # What this process starts, it starts now.
        finished = self._finisher(effect.id, effect.unit)
        self._hold(begin(self._driver, effect, finished, inherited=inherited, same_boot=same_boot), halt=halt)

    def _hold(self, work: EffectWork, *, halt: bool = False) -> None:
        effect = work.effect
        self._works[effect.unit] = work
        self.busy += type(effect) in PROGRAMS
        work.start(halt=halt)

    def _finisher(self, effect: EffectId, unit: str) -> Callable[[Outcome | None], None]:
        """Return what a work calls when nothing of it is left; the outcome is None when it was a mere wait, cancelled."""

        def finished(outcome: Outcome | None) -> None:
            work = self._works.get(unit)
            if work is None or work.effect.id != effect:
                return
            if outcome is None:
                self.release(effect)
                self._match(unit)
            else:
                self._driver.deliver(outcome)

        return finished

    def release(self, effect: EffectId) -> None:
        """The effect's outcome is durable: its unit may do something else.

        Not before: between the end of a program and the fact of it, the state still wants the effect, and an empty
        slot would be filled with the same launch again.
        """
        unit = unit_of(effect)
        work = self._works.get(unit)
        if work is not None and work.effect.id == effect:
            del self._works[unit]
            self.busy -= type(work.effect) in PROGRAMS
            self._freed[unit] = None
            self._driver.engine.launches.settle(effect)

    def abandon(self) -> None:
        """Lets go of everything in flight without stopping it: timers end, programs live on."""
        for work in list(self._works.values()):
            work.abandon()
        self._works.clear()
