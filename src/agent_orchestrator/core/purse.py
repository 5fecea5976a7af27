"""What is spent and what is set aside under the limits of one run. Pure arithmetic; the engine acts on it.

A claim is made before an agent starts and follows what it uses, always two calls ahead (the one that may be under way
by the time the last is seen, and the next), so that agents side by side cannot overspend together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from agent_orchestrator.core.budget import Amounts, say_amount

WARN_PERCENT = (75, 90)
"""Shares of a limit at which a person is warned."""

CALL_GROWTH = 1.5
"""The next call to a model may cost this much more than the largest so far: contexts grow."""

CALLS_AHEAD = 2
"""How many calls are set aside for an agent that is seen only after each: when one is over, the next is under way.
With both numbers, four agents side by side pass their limit by one call at most, those broken off included, as long
as no call is more than 1.4 times as large as all before it."""

KINDS = ("cost_usd", "tokens")

_SLACK = 1e-9
"""Sums of dollars are not exact."""


class Spent(msgspec.Struct):
    """What was consumed; launches that did not say are counted, never taken for nothing."""

    cost_usd: float = 0.0
    tokens: int = 0
    unknown: int = 0
    wall_s: float = 0.0

    def add(self, cost_usd: float | None, tokens: int | None, wall_s: float | None = None) -> None:
        """One launch more."""
        self.cost_usd += cost_usd or 0.0
        self.tokens += tokens or 0
        self.wall_s += wall_s or 0.0
        self.unknown += cost_usd is None


class Scope(msgspec.Struct, frozen=True):
    """One limit that a launch is under: of the `step`, the `run` or the `day`, by the key under which it is counted."""

    level: str
    key: str
    limit: Amounts


class Call(msgspec.Struct, frozen=True):
    """What one call to a model takes, or several together; None is unknown."""

    cost_usd: float | None = None
    tokens: int | None = None


class Claim(msgspec.Struct):
    """What a launch may use before it has to ask for more."""

    scopes: tuple[Scope, ...]
    cost_usd: float = 0.0
    tokens: int = 0
    used: Call = Call(0.0, 0)
    """What it has used of that."""


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that leaves no room for another call."""

    scope: Scope
    kind: str
    spent: float
    claimed: float
    """By other launches at work."""
    need: float | None = None

    def __str__(self) -> str:
        limit = say_amount(self.kind, getattr(self.scope.limit, self.kind))
        what = {"cost_usd": "budget", "tokens": "token budget"}.get(self.kind, "time")
        said = f"{say_amount(self.kind, self.spent)} of the {self.scope.level}'s {what} of {limit} is spent"
        if self.claimed > _SLACK:
            said += f", {say_amount(self.kind, self.claimed)} is set aside for agents at work"
        if self.need is not None and self.spent < getattr(self.scope.limit, self.kind):
            said += f", and another call may take {say_amount(self.kind, self.need)}"
        return said


class Purse:
    """The spendings and claims of one run."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self._spent: dict[str, Spent] = {}
        self._claimed: dict[str, Spent] = {}
        self._used: dict[str, Spent] = {}
        self._largest: dict[str, Call] = {}

    def spent(self, key: str) -> Spent:
        """What is spent for good under a key."""
        return self._spent.setdefault(key, Spent())

    def claimed(self, key: str) -> Spent:
        """What is set aside under a key."""
        return self._claimed.setdefault(key, Spent())

    def used(self, key: str) -> Spent:
        """What is spent under a key, by launches that are over and by those at work."""
        done, going = self.spent(key), self._used.setdefault(key, Spent())
        return Spent(done.cost_usd + going.cost_usd, done.tokens + going.tokens, done.unknown, done.wall_s)

    def learn(self, model: str, call: Call) -> None:
        """A call of this model took so much."""
        known = self._largest.get(model, Call())
        cost_usd = max((cost for cost in (known.cost_usd, call.cost_usd) if cost is not None), default=None)
        tokens = max((count for count in (known.tokens, call.tokens) if count is not None), default=None)
        self._largest[model] = Call(cost_usd, tokens)

    def next_call(self, model: str) -> Call:
        """What another call of this model may take; unknown before the first."""
        known = self._largest.get(model, Call())
        cost_usd = None if known.cost_usd is None else known.cost_usd * CALL_GROWTH
        return Call(cost_usd, None if known.tokens is None else math.ceil(known.tokens * CALL_GROWTH))

    def room(self, scopes: Iterable[Scope], kind: str) -> float:
        """What is left of one kind under all of these; infinite without a limit."""
        left = math.inf
        for scope in scopes:
            limit = getattr(scope.limit, kind)
            if limit is not None:
                left = min(left, limit - getattr(self.spent(scope.key), kind) - getattr(self.claimed(scope.key), kind))
        return left

    def claim(self, effect: str, scopes: tuple[Scope, ...], need: Call, ahead: int = 1) -> Shortage | None:
        """Sets aside what a launch's first calls may take; all there is, while nobody knows what that is."""
        taken = {"cost_usd": 0.0, "tokens": 0.0}
        for kind in KINDS:
            room, wanted = self.room(scopes, kind), getattr(need, kind)
            if room == math.inf:
                continue
            if room <= _SLACK or (wanted is not None and not self._fits(scopes, kind, wanted, ahead, room)):
                return self._shortage(scopes, kind, wanted)
            taken[kind] = room if wanted is None else min(ahead * wanted, room)
        self.claims[effect] = Claim(scopes)
        self._set(effect, taken["cost_usd"], int(taken["tokens"]))
        return None

    def adopt(self, effect: str, scopes: tuple[Scope, ...], need: Call) -> None:
        """Sets it aside for a launch that is at work already, whether there is room or not."""
        self.claims[effect] = Claim(scopes)
        self._set(effect, need.cost_usd or 0.0, need.tokens or 0)

    def use(self, effect: str, used: Call, need: Call) -> Shortage | None:
        """A launch at work has used so much: its claim becomes that and the calls ahead, if there is room for them."""
        claim = self.claims[effect]
        before = Call(claim.cost_usd, claim.tokens)
        self._set(effect, 0.0, 0)
        wanted = {"cost_usd": 0.0, "tokens": 0.0}
        short: Shortage | None = None
        for kind in KINDS:
            have, more = getattr(used, kind), getattr(need, kind)
            if have is None or more is None:
                wanted[kind] = max(have or 0, getattr(before, kind))  # It does not say: what was set aside stays so.
                continue
            room = self.room(claim.scopes, kind) - have
            wanted[kind] = have
            if self._fits(claim.scopes, kind, more, CALLS_AHEAD, room):
                wanted[kind] += min(CALLS_AHEAD * more, room)
            else:
                short = short or self._shortage(claim.scopes, kind, more, have)
        self._set(effect, wanted["cost_usd"], int(wanted["tokens"]))
        self._use(claim, used)
        return short

    def settle(self, effect: str, keys: Iterable[str], used: Call, wall_s: float | None = None) -> None:
        """A launch is over: what it used is spent, and nothing is set aside for it any more."""
        self.release(effect)
        for key in keys:
            self.spent(key).add(used.cost_usd, used.tokens, wall_s)

    def release(self, effect: str) -> None:
        """Gives a claim back."""
        if effect in self.claims:
            self._set(effect, 0.0, 0)
            self._use(self.claims.pop(effect), Call(0.0, 0))

    def _use(self, claim: Claim, used: Call) -> None:
        for scope in claim.scopes:
            going = self._used.setdefault(scope.key, Spent())
            going.cost_usd += (used.cost_usd or 0.0) - (claim.used.cost_usd or 0.0)
            going.tokens += (used.tokens or 0) - (claim.used.tokens or 0)
        claim.used = used

    def _set(self, effect: str, cost_usd: float, tokens: int) -> None:
        claim = self.claims[effect]
        for scope in claim.scopes:
            claimed = self.claimed(scope.key)
            claimed.cost_usd += cost_usd - claim.cost_usd
            claimed.tokens += tokens - claim.tokens
        claim.cost_usd, claim.tokens = cost_usd, tokens

    def _fits(self, scopes: tuple[Scope, ...], kind: str, need: float, ahead: int, room: float) -> bool:
        """Whether there is room for the calls ahead.

        Whoever is alone may pass the limit by a call, and has to leave less unused: room for one call is enough where the
        next is under way when it is seen, and for one as large as those before where nothing follows unseen.
        """
        alone = not any(getattr(self.claimed(scope.key), kind) > _SLACK for scope in scopes)
        least = ahead * need if not alone else need if ahead > 1 else need / CALL_GROWTH
        return least <= room + _SLACK

    def _shortage(self, scopes: tuple[Scope, ...], kind: str, need: float | None, used: float = 0) -> Shortage:
        limited = [scope for scope in scopes if getattr(scope.limit, kind) is not None]
        tightest = min(limited, key=lambda scope: self.room((scope,), kind))
        spent, claimed = getattr(self.spent(tightest.key), kind), getattr(self.claimed(tightest.key), kind)
        return Shortage(scope=tightest, kind=kind, spent=spent + used, claimed=claimed, need=need)


def past_percent(spent: float, limit: float, warned: int) -> int | None:
    """The share of a limit that was passed and not warned of yet."""
    past = [percent for percent in WARN_PERCENT if percent > warned and spent >= limit * percent / 100 - _SLACK]
    return past[-1] if past else None
