"""A run's budget at four levels, and the arithmetic of what is spent and reserved under it. Pure; the engine acts on it.

Money is reserved before an agent starts. The reservation follows what the agent uses, always two calls ahead (the one
that may be under way by the time the last is seen, and the next), so that agents side by side cannot overspend together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from agent_orchestrator.core.units import read_count, read_duration_s, read_money, say_cost, say_duration
from agent_orchestrator.errors import InvalidValue, UsageError

T = TypeVar("T")

BUDGET_KEYS = (
    *("run_usd", "run_tokens", "run_time", "step_usd", "step_tokens", "step_time"),
    *("attempt_usd", "attempt_tokens", "day_usd", "day_tokens", "day_time", "allow_unmetered"),
)
"""The keys of the `[budget]` table of a configuration file."""

WARN_PERCENT = (75, 90)
"""Shares of a limit at which a person is warned."""

CALL_GROWTH = 1.5
"""The next call to a model may cost this much more than the largest so far: contexts grow."""

CALLS_AHEAD = 2
"""The number of calls that are reserved for an agent that is seen only after each: when one is over, the next is under way.
With both numbers, four agents side by side pass their limit by one call at most, those broken off included, as long
as no call is more than 1.4 times as large as all before it."""

KINDS = ("cost_usd", "tokens")

_SLACK = 1e-9
"""Sums of dollars are not exact."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budget of one level; None is no limit."""

    cost_usd: float | None = None
    tokens: int | None = None
    wall_s: float | None = None
    """Time in which something of the run was at work: waiting, parked and paused time is left out."""

    def override(self, given: Amounts) -> Amounts:
        """Return these amounts, with those that are given in their place."""
        return Amounts(**{name: _first(getattr(given, name), getattr(self, name)) for name in self.__struct_fields__})

    @property
    def is_set(self) -> bool:
        """Say whether anything is limited."""
        return self.cost_usd is not None or self.tokens is not None or self.wall_s is not None


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The amounts that an attempt of a unit, a unit, the run, and in a day all runs of the repository may spend."""

    attempt: Amounts = Amounts()
    step: Amounts = Amounts()
    run: Amounts = Amounts()
    day: Amounts = Amounts()
    allow_unmetered: bool | None = None
    """Agents that do not say what they consume may work under a limit on it; None is not said, and means no."""

    def override(self, given: Budget) -> Budget:
        """Return this budget, with the amounts that are really given in place of its own."""
        return Budget(
            attempt=self.attempt.override(given.attempt),
            step=self.step.override(given.step),
            run=self.run.override(given.run),
            day=self.day.override(given.day),
            allow_unmetered=_first(given.allow_unmetered, self.allow_unmetered),
        )

    @property
    def is_set(self) -> bool:
        """Say whether anything is limited or allowed."""
        return self.allow_unmetered is not None or any(one.is_set for one in (self.attempt, self.step, self.run, self.day))

    @property
    def limits_cost(self) -> bool:
        """Say whether money is limited at some level."""
        return any(one.cost_usd is not None for one in (self.attempt, self.step, self.run, self.day))

    @property
    def limits_tokens(self) -> bool:
        """Say whether tokens are limited at some level."""
        return any(one.tokens is not None for one in (self.attempt, self.step, self.run, self.day))


class Spent(msgspec.Struct):
    """A sum of usage; launches that did not say theirs are counted, never taken for nothing."""

    cost_usd: float = 0.0
    tokens: int = 0
    unknown: int = 0
    wall_s: float = 0.0

    def add(self, cost_usd: float | None, tokens: int | None, wall_s: float | None = None) -> None:
        """Add the usage of a launch."""
        self.cost_usd += cost_usd or 0.0
        self.tokens += tokens or 0
        self.wall_s += wall_s or 0.0
        self.unknown += cost_usd is None


class Scope(msgspec.Struct, frozen=True):
    """One level that a launch is charged to: the `step`, the `run` or the `day`, by the key under which it is counted."""

    level: str
    key: str
    limit: Amounts


class Call(msgspec.Struct, frozen=True):
    """The usage of one call to a model, or of several together; None is unknown."""

    cost_usd: float | None = None
    tokens: int | None = None


class Reservation(msgspec.Struct):
    """The money and tokens set aside for one launch: it may use these before it has to ask for more."""

    scopes: tuple[Scope, ...]
    cost_usd: float = 0.0
    tokens: int = 0
    used: Call = Call(0.0, 0)
    """The part that it has used."""


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A budget that leaves no room for another call."""

    scope: Scope
    kind: str
    spent: float
    reserved: float
    """By other launches at work."""
    need: float | None = None

    def __str__(self) -> str:
        limit = say_amount(self.kind, getattr(self.scope.limit, self.kind))
        what = {"cost_usd": "budget", "tokens": "token budget"}.get(self.kind, "time")
        said = f"{say_amount(self.kind, self.spent)} of the {self.scope.level}'s {what} of {limit} is spent"
        if self.reserved > _SLACK:
            said += f", {say_amount(self.kind, self.reserved)} is set aside for agents at work"
        if self.need is not None and self.spent < getattr(self.scope.limit, self.kind):
            said += f", and another call may take {say_amount(self.kind, self.need)}"
        return said


class Balance:
    """The spendings and reservations of one run."""

    def __init__(self) -> None:
        self.reservations: dict[str, Reservation] = {}
        self._spent: dict[str, Spent] = {}
        self._reserved: dict[str, Spent] = {}
        self._used: dict[str, Spent] = {}
        self._largest: dict[str, Call] = {}

    def spent(self, key: str) -> Spent:
        """Return what launches that are over have spent under a key."""
        return self._spent.setdefault(key, Spent())

    def reserved(self, key: str) -> Spent:
        """Return what is reserved under a key."""
        return self._reserved.setdefault(key, Spent())

    def used(self, key: str) -> Spent:
        """Return what is spent under a key, by launches that are over and by those at work."""
        done, going = self.spent(key), self._used.setdefault(key, Spent())
        return Spent(done.cost_usd + going.cost_usd, done.tokens + going.tokens, done.unknown, done.wall_s)

    def learn(self, model: str, call: Call) -> None:
        """Remember the largest call of a model."""
        known = self._largest.get(model, Call())
        cost_usd = max((cost for cost in (known.cost_usd, call.cost_usd) if cost is not None), default=None)
        tokens = max((count for count in (known.tokens, call.tokens) if count is not None), default=None)
        self._largest[model] = Call(cost_usd, tokens)

    def next_call(self, model: str) -> Call:
        """Return what another call of a model may take; unknown before the first."""
        known = self._largest.get(model, Call())
        cost_usd = None if known.cost_usd is None else known.cost_usd * CALL_GROWTH
        return Call(cost_usd, None if known.tokens is None else math.ceil(known.tokens * CALL_GROWTH))

    def room(self, scopes: Iterable[Scope], kind: str) -> float:
        """Return what is left of one kind under all of these; infinite without a limit."""
        left = math.inf
        for scope in scopes:
            limit = getattr(scope.limit, kind)
            if limit is not None:
                left = min(left, limit - getattr(self.spent(scope.key), kind) - getattr(self.reserved(scope.key), kind))
        return left

    def reserve(self, effect: str, scopes: tuple[Scope, ...], need: Call, ahead: int = 1) -> Shortfall | None:
        """Reserve what a launch's first calls may take; all there is, while nobody knows what that is."""
        taken = {"cost_usd": 0.0, "tokens": 0.0}
        for kind in KINDS:
            room, wanted = self.room(scopes, kind), getattr(need, kind)
            if room == math.inf:
                continue
            if room <= _SLACK or (wanted is not None and not self._fits(scopes, kind, wanted, ahead, room)):
                return self._shortfall(scopes, kind, wanted)
            taken[kind] = room if wanted is None else min(ahead * wanted, room)
        self.reservations[effect] = Reservation(scopes)
        self._set(effect, taken["cost_usd"], int(taken["tokens"]))
        return None

    def adopt(self, effect: str, scopes: tuple[Scope, ...], need: Call) -> None:
        """Reserve for a launch that is at work already, whether there is room or not."""
        self.reservations[effect] = Reservation(scopes)
        self._set(effect, need.cost_usd or 0.0, need.tokens or 0)

    def use(self, effect: str, used: Call, need: Call) -> Shortfall | None:
        """Note what a launch at work has used: its reservation becomes that and the calls ahead, if there is room for them."""
        reservation = self.reservations[effect]
        before = Call(reservation.cost_usd, reservation.tokens)
        self._set(effect, 0.0, 0)
        wanted = {"cost_usd": 0.0, "tokens": 0.0}
        short: Shortfall | None = None
        for kind in KINDS:
            have, more = getattr(used, kind), getattr(need, kind)
            if have is None or more is None:
                wanted[kind] = max(have or 0, getattr(before, kind))  # It does not say: what was reserved stays so.
                continue
            room = self.room(reservation.scopes, kind) - have
            wanted[kind] = have
            if self._fits(reservation.scopes, kind, more, CALLS_AHEAD, room):
                wanted[kind] += min(CALLS_AHEAD * more, room)
            else:
                short = short or self._shortfall(reservation.scopes, kind, more, have)
        self._set(effect, wanted["cost_usd"], int(wanted["tokens"]))
        self._use(reservation, used)
        return short

    def settle(self, effect: str, keys: Iterable[str], used: Call, wall_s: float | None = None) -> None:
        """End a launch: what it used is spent, and nothing is reserved for it any more."""
        self.release(effect)
        for key in keys:
            self.spent(key).add(used.cost_usd, used.tokens, wall_s)

    def release(self, effect: str) -> None:
        """Give a reservation back."""
        if effect in self.reservations:
            self._set(effect, 0.0, 0)
            self._use(self.reservations.pop(effect), Call(0.0, 0))

    def _use(self, reservation: Reservation, used: Call) -> None:
        for scope in reservation.scopes:
            going = self._used.setdefault(scope.key, Spent())
            going.cost_usd += (used.cost_usd or 0.0) - (reservation.used.cost_usd or 0.0)
            going.tokens += (used.tokens or 0) - (reservation.used.tokens or 0)
        reservation.used = used

    def _set(self, effect: str, cost_usd: float, tokens: int) -> None:
        reservation = self.reservations[effect]
        for scope in reservation.scopes:
            reserved = self.reserved(scope.key)
            reserved.cost_usd += cost_usd - reservation.cost_usd
            reserved.tokens += tokens - reservation.tokens
        reservation.cost_usd, reservation.tokens = cost_usd, tokens

    def _fits(self, scopes: tuple[Scope, ...], kind: str, need: float, ahead: int, room: float) -> bool:
        """Say whether there is room for the calls ahead.

        Whoever is alone may pass the limit by a call, and has to leave less unused: room for one call is enough where the
        next is under way when it is seen, and for one as large as those before where nothing follows unseen.
        """
        alone = not any(getattr(self.reserved(scope.key), kind) > _SLACK for scope in scopes)
        least = ahead * need if not alone else need if ahead > 1 else need / CALL_GROWTH
        return least <= room + _SLACK

    def _shortfall(self, scopes: tuple[Scope, ...], kind: str, need: float | None, used: float = 0) -> Shortfall:
        limited = [scope for scope in scopes if getattr(scope.limit, kind) is not None]
        tightest = min(limited, key=lambda scope: self.room((scope,), kind))
        spent, reserved = getattr(self.spent(tightest.key), kind), getattr(self.reserved(tightest.key), kind)
        return Shortfall(scope=tightest, kind=kind, spent=spent + used, reserved=reserved, need=need)


def past_percent(spent: float, limit: float, warned: int) -> int | None:
    """Return the share of a limit that was passed and not warned of yet."""
    past = [percent for percent in WARN_PERCENT if percent > warned and spent >= limit * percent / 100 - _SLACK]
    return past[-1] if past else None


def say_amount(kind: str, amount: float) -> str:
    """Say an amount of one kind, for people."""
    if kind == "tokens":
        return f"{int(amount):,} tokens"
    return say_cost(amount) if kind == "cost_usd" else say_duration(amount)


def read_budget(table: Mapping[str, Any], where: str) -> Budget:
    """Read the `[budget]` table of a configuration file; a UsageError names the key at fault."""
    for key in table:
        if key not in BUDGET_KEYS:
            raise UsageError(detail=f"{where}: unknown key {key}; known keys are {', '.join(BUDGET_KEYS)}.")
    allowed = table.get("allow_unmetered")
    if allowed is not None and not isinstance(allowed, bool):
        raise InvalidValue(what=f"{where}: allow_unmetered", value=allowed, expected="true or false")
    levels = {level: _read_amounts(table, level, where) for level in ("attempt", "step", "run", "day")}
    return Budget(**levels, allow_unmetered=allowed)


def _read_amounts(table: Mapping[str, Any], level: str, where: str) -> Amounts:
    money, count, time = (table.get(f"{level}_{unit}") for unit in ("usd", "tokens", "time"))
    return Amounts(
        cost_usd=None if money is None else read_money(money, f"{where}: {level}_usd"),
        tokens=None if count is None else read_count(count, f"{where}: {level}_tokens"),
        wall_s=None if time is None else read_duration_s(time, f"{where}: {level}_time"),
    )


def _first(one: T | None, other: T | None) -> T | None:
    return one if one is not None else other
