"""What ought to be going on: unit → effect, one thing per unit at a time.

Only `evolve` changes it. It remembers which units changed since the engine last looked, so that making the world
match costs what changed, not what exists; after a crash the engine looks at all of it, with the same code.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_orchestrator.core.effects import ACTIVE, Effect


class Doing:
    """The wanted effects of one run."""

    __slots__ = ("_active", "_boots", "_changed", "_effects", "boot")

    def __init__(self) -> None:
        self._effects: dict[str, Effect] = {}
        self._boots: dict[str, str | None] = {}
        self.boot: str | None = None
        """The boot in which the run is driven at this point of its journal."""
        self._changed: dict[str, None] = {}
        self._active = 0

    def put(self, effect: Effect) -> None:
        """From now on the unit does this, instead of what it did."""
        before = self._effects.get(effect.unit)
        self._active += isinstance(effect, ACTIVE) - isinstance(before, ACTIVE)
        self._effects[effect.unit] = effect
        self._boots[effect.unit] = self.boot
        self._changed[effect.unit] = None

    def drop(self, unit: str) -> None:
        """From now on the unit does nothing."""
        before = self._effects.pop(unit, None)
        if before is not None:
            self._active -= isinstance(before, ACTIVE)
            self._changed[unit] = None

    def of(self, unit: str) -> Effect | None:
        """What the unit does."""
        return self._effects.get(unit)

    def wants(self, effect: str) -> bool:
        """Whether an outcome of this effect still matters."""
        wanted = self._effects.get(effect.split("/", 2)[1])
        return wanted is not None and wanted.id == effect

    def boot_of(self, unit: str) -> str | None:
        """The boot in which the unit's effect came to be wanted: after another one it must not be started any more."""
        return self._boots[unit]

    @property
    def active(self) -> int:
        """How many units run a program."""
        return self._active

    def take_changes(self) -> list[str]:
        """Units whose effect changed since the last call, in order of change."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._effects.values())

    def __len__(self) -> int:
        return len(self._effects)
