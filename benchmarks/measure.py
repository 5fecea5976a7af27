"""One figure: what was measured, its target, and how the rounds lay."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A value (a ratio unless it has a unit) with the bound it should keep."""

    name: str
    value: float
    bound: float
    at_least: bool = False
    unit: str = "×"
    note: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "met   " if self.met else "MISSED"
        note = f"  ({self.note})" if self.note else ""
        return f"{verdict}  {self.name:<58} {self.value:8.2f} {self.unit:<4} target {sign} {self.bound:g}{note}"


def of_rounds(name: str, ratios: Sequence[float], bound: float, *, at_least: bool = False, note: str = "") -> Measure:
    """The median of some rounds, with their range."""
    spread = f"{len(ratios)} rounds, {min(ratios):.2f} to {max(ratios):.2f}"
    return Measure(
        name=name,
        value=statistics.median(ratios),
        bound=bound,
        at_least=at_least,
        note=f"{spread}; {note}" if note else spread,
    )
