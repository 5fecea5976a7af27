"""The effects that ought to be going on: unit → effect, one thing per unit at a time.

Only `evolve` changes it. It remembers which units changed since the engine last looked, so that making the world
match costs what changed, not what exists; after a crash the engine looks at all of it, with the same code.
It also keeps what the engine decides for every system alike: its budget, and units whose agent may not start yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import ACTIVE, AgentChoice, Effect, RunAgent
from agent_orchestrator.core.events import ToolRefused
from agent_orchestrator.core.hold import Hold
from agent_orchestrator.core.ids import EffectId, unit_of


class Doing:
    """The wanted effects of one run."""

    __slots__ = ("_active", "_boots", "_changed", "_effects", "boot", "budget", "holds", "refused", "warned", "worked_us")

    def __init__(self) -> None:
        self._effects: dict[str, Effect] = {}
        self._boots: dict[str, str | None] = {}
        self.boot: str | None = None
        """The boot in which the run is driven at this point of its journal."""
        self._changed: dict[str, None] = {}
        self._active = 0
        self.budget = Budget()
        self.warned: dict[str, int] = {}
        """The highest share, in percent, that was warned of, by limit."""
        self.holds: dict[str, Hold] = {}
        """Units whose wanted agent has not started, and may not yet: unit → why."""
        self.refused: dict[tuple[str, str, str], ToolRefused] = {}
        """Tools that were refused to agents of the run: agent, tool, what was asked."""
        self.worked_us = 0
        """The time in which something of the run was at work."""

    def put(self, effect: Effect) -> None:
        """From now on the unit does this, instead of what it did."""
        before = self._effects.get(effect.unit)
        self._active += isinstance(effect, ACTIVE) - isinstance(before, ACTIVE)
        if self.holds:
            self.holds.pop(effect.unit, None)
        self._effects[effect.unit] = effect
        self._boots[effect.unit] = self.boot
        self._changed[effect.unit] = None

    def drop(self, unit: str) -> None:
        """From now on the unit does nothing."""
        before = self._effects.pop(unit, None)
        if before is not None:
            self._active -= isinstance(before, ACTIVE)
            self._changed[unit] = None
            if self.holds:
                self.holds.pop(unit, None)

    def hold(self, unit: str, hold: Hold) -> None:
        """The unit's agent may not start yet; nothing, when the unit does something else by now."""
        if self.wants(hold.effect):
            self.holds[unit] = hold

    def let_go(self, unit: str, effect: EffectId) -> None:
        """The unit's agent may start."""
        if self.is_held(effect):
            del self.holds[unit]
            self._changed[unit] = None

    def change_agent(self, unit: str, agent: AgentChoice) -> None:
        """Another agent is to do what the unit does; its launch has not begun."""
        effect = self._effects[unit]
        if isinstance(effect, RunAgent):
            self._effects[unit] = msgspec.structs.replace(effect, agent=agent)

    def is_held(self, effect: EffectId) -> bool:
        """Tell whether this effect is wanted, and may not start yet."""
        hold = self.holds.get(unit_of(effect)) if self.holds else None
        return hold is not None and hold.effect == effect

    def of(self, unit: str) -> Effect | None:
        """Give the unit's effect."""
        return self._effects.get(unit)

    def wants(self, effect: EffectId) -> bool:
        """Tell whether an outcome of this effect still matters."""
        wanted = self._effects.get(unit_of(effect))
        return wanted is not None and wanted.id == effect

    def boot_of(self, unit: str) -> str | None:
        """The boot in which the unit's effect came to be wanted: after another one it must not be started any more."""
        return self._boots[unit]

    @property
    def active(self) -> int:
        """The number of units that run a program, those that are held included: they keep their place."""
        return self._active

    @property
    def at_work(self) -> int:
        """The number of units that run a program now."""
        return self._active - len(self.holds)

    def take_changes(self) -> list[str]:
        """Units whose effect changed since the last call, in order of change."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def details(self) -> list[dict[str, str]]:
        """Give what commands show of it."""
        return [{"step": effect.unit, "effect": effect.id} for effect in self]

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._effects.values())

    def __len__(self) -> int:
        return len(self._effects)
