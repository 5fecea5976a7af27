"""What a run may spend, at four levels, and why a unit is held: the words for budgets and rate limits.

Both are the engine's business, the same for every system: it keeps limits and holds in `state.doing` and changes them
with common events. A system only shows them. The arithmetic is in `purse.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import read_count, read_duration_s, read_money, say_cost, say_duration
from agent_orchestrator.errors import InvalidValue, UsageError

T = TypeVar("T")

BUDGET_KEYS = (
    *("run_usd", "run_tokens", "run_time", "step_usd", "step_tokens", "step_time"),
    *("attempt_usd", "attempt_tokens", "day_usd", "day_tokens", "day_time", "allow_unmetered"),
)
"""The keys of the `[budget]` table of a configuration file."""

UNKNOWN_WINDOW = "unknown"
"""The window of a rate limit whose agent does not say which one it hit."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of one level; None is no limit."""

    cost_usd: float | None = None
    tokens: int | None = None
    wall_s: float | None = None
    """Time in which something of the run was at work: waiting, parked and paused time is left out."""

    def laid_under(self, given: Amounts) -> Amounts:
        """These, with what is given instead where something is."""
        return Amounts(**{name: _first(getattr(given, name), getattr(self, name)) for name in self.__struct_fields__})

    @property
    def any(self) -> bool:
        """Whether anything is limited."""
        return self.cost_usd is not None or self.tokens is not None or self.wall_s is not None


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be spent: by one attempt of a unit, by a unit, by the run, and in a day by all runs of the repository."""

    attempt: Amounts = Amounts()
    step: Amounts = Amounts()
    run: Amounts = Amounts()
    day: Amounts = Amounts()
    allow_unmetered: bool | None = None
    """Agents that do not say what they consume may work under a limit on it; None is not said, and means no."""

    def laid_under(self, given: Limits) -> Limits:
        """These, with what is given instead where something is: only what is really given overrides."""
        return Limits(
            attempt=self.attempt.laid_under(given.attempt),
            step=self.step.laid_under(given.step),
            run=self.run.laid_under(given.run),
            day=self.day.laid_under(given.day),
            allow_unmetered=_first(given.allow_unmetered, self.allow_unmetered),
        )

    @property
    def any(self) -> bool:
        """Whether anything is limited or said."""
        return self.allow_unmetered is not None or any(one.any for one in (self.attempt, self.step, self.run, self.day))

    @property
    def costs(self) -> bool:
        """Whether money is limited at some level."""
        return any(one.cost_usd is not None for one in (self.attempt, self.step, self.run, self.day))

    @property
    def counts(self) -> bool:
        """Whether tokens are limited at some level."""
        return any(one.tokens is not None for one in (self.attempt, self.step, self.run, self.day))


class Why(StrEnum):
    """Why a unit is held."""

    RATE_LIMIT = "rate_limit"
    BUDGET = "budget"


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit whose agent may not start yet."""

    effect: str
    why: Why
    reason: str
    """For people, in a few words."""
    until_us: int | None = None
    account: str = ""
    window: str = ""

    @property
    def told(self) -> str:
        """As documents show it."""
        return say_parked(self, stamp(self.until_us)) if self.until_us is not None else self.reason


def say_parked(hold: Hold, until: str) -> str:
    """`parked until 14:05 (claude, 5-hour window)`; `until` is the time as it is to be read."""
    window = f"{hold.window} window" if hold.window not in ("", UNKNOWN_WINDOW) else "rate limit"
    return f"parked until {until} ({hold.account}, {window})"


def say_amount(kind: str, amount: float) -> str:
    """An amount of one kind, for people."""
    if kind == "tokens":
        return f"{int(amount):,} tokens"
    return say_cost(amount) if kind == "cost_usd" else say_duration(amount)


def read_budget(table: Mapping[str, Any], where: str) -> Limits:
    """Read the `[budget]` table of a configuration file; a UsageError names the key at fault."""
    for key in table:
        if key not in BUDGET_KEYS:
            raise UsageError(detail=f"{where}: unknown key {key}; known keys are {', '.join(BUDGET_KEYS)}.")
    allowed = table.get("allow_unmetered")
    if allowed is not None and not isinstance(allowed, bool):
        raise InvalidValue(what=f"{where}: allow_unmetered", value=allowed, expected="true or false")
    levels = {level: _read_amounts(table, level, where) for level in ("attempt", "step", "run", "day")}
    return Limits(**levels, allow_unmetered=allowed)


def _read_amounts(table: Mapping[str, Any], level: str, where: str) -> Amounts:
    money, count, time = (table.get(f"{level}_{unit}") for unit in ("usd", "tokens", "time"))
    return Amounts(
        cost_usd=None if money is None else read_money(money, f"{where}: {level}_usd"),
        tokens=None if count is None else read_count(count, f"{where}: {level}_tokens"),
        wall_s=None if time is None else read_duration_s(time, f"{where}: {level}_time"),
    )


def _first(one: T | None, other: T | None) -> T | None:
    return one if one is not None else other
