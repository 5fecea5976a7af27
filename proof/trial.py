"""A trial: one fault, or one schedule of faults, for one system; data, so that it can be repeated by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

SYSTEMS = ("workflow", "loop", "phases", "team", "swarm")


class Trial(msgspec.Struct, frozen=True):
    """One trial. Its name is what `--repeat` takes."""

    kind: str
    system: str
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return the words that repeat it."""
        return " ".join((self.kind, self.system, *map(str, self.numbers)))


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault."""

    name: str
    unit: str
    """The things that are counted, in the plural."""
    plan: Callable[[int, float], Iterator[Trial]]
    """Gives the trials of a first seed and a scale: 1 is what a run of minutes does, less is quicker."""
    play: Callable[[Trial, Path], int]
    """Plays one in an empty folder and returns how many things were tried; raises AssertionError when something broke."""
    max_s: float = 900.0
    """A trial that takes longer hangs, and that is a fault."""
    in_memory: bool = False
    """Nothing of it needs a real disk."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a trial: how many things were tried, and what broke."""

    trial: Trial
    tried: int
    fault: str = ""


def read_trial(name: str) -> Trial:
    """Read the name of a trial; raises ValueError when it is none."""
    try:
        kind, system, *numbers = name.split()
        return Trial(kind, system, tuple(int(number) for number in numbers))
    except ValueError:
        raise ValueError(f"{name!r} names no trial: it is a kind, a system and numbers, as in 'crash workflow 12'") from None
