"""The figures of a part: a row is one figure with its spread and target, a plot is a picture of several."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure: the median of some rounds, with the target that it should keep."""

    what: str
    value: float | None = None
    """None where it was not measured."""
    low: float | None = None
    high: float | None = None
    rounds: int = 1
    unit: str = "×"
    target: float | None = None
    at_least: bool = False
    why: str = ""
    """The reason, where known, that the target is missed or that nothing was measured."""
    note: str = ""
    broken: bool = False
    """True where something that had to hold did not, so that the target is missed whatever the figure says."""

    @property
    def verdict(self) -> str:
        """Say whether the target was met; empty without one."""
        if self.value is None:
            return "not measured"
        if self.target is None:
            return ""
        met = self.value >= self.target if self.at_least else self.value <= self.target
        return "met" if met and not self.broken else "missed"


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Some points of a plot that belong together."""

    name: str
    points: list[tuple[float, float]]


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar of a plot, with the range of its rounds."""

    name: str
    value: float
    low: float
    high: float
    ours: bool = False


class Plot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A picture: bars, or curves over a logarithmic axis."""

    name: str
    title: str
    x: str = ""
    y: str
    bars: list[Bar] = []
    curves: list[Curve] = []
    target: float | None = None


Figure = Row | Plot


def of_rounds(what: str, values: Sequence[float], **more: object) -> Row:
    """Return the median of some rounds, with their range."""
    given = {"value": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}
    return Row(what=what, **given, **more)  # type: ignore[arg-type]


def not_measured(what: str, why: str) -> Row:
    """Return the row of something that could not be measured."""
    return Row(what=what, why=why)


def bar_of(name: str, row: Row, *, ours: bool = False) -> Bar:
    """Return a row as a bar."""
    assert row.value is not None
    low, high = row.low, row.high
    return Bar(
        name=name,
        value=row.value,
        low=low if low is not None else row.value,
        high=high if high is not None else row.value,
        ours=ours,
    )
