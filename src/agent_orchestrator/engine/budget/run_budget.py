"""The budget of one run as it is spent: reserved before agents start, metered while they work, settled when they are over.

It knows the budget from `state.doing`, what was spent from the ledger, and what other processes spend in a day from the
store. It starts, holds and stops nothing: `admission` does, by what is answered here.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from agent_orchestrator.agents import find_performer
from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.core.budget import (
    CALL_GROWTH,
    CALLS_AHEAD,
    KINDS,
    Amounts,
    Balance,
    Budget,
    Call,
    Scope,
    Shortfall,
    past_percent,
    say_amount,
)
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import BudgetWarned
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId, split_effect_id, unit_of
from agent_orchestrator.core.inputs import AgentEnded, Usage
from agent_orchestrator.core.units import US, day_start_us
from agent_orchestrator.errors import STORE_PASSES, DiskFull, StoreAway, StoreLocked
from agent_orchestrator.store.port import Day

if TYPE_CHECKING:
    from agent_orchestrator.core.doing import Doing
    from agent_orchestrator.engine.driver import Driver

NO_LIMIT_TOKENS = 2**62

CUT = frozenset(
    {
        *(FailureKind.BUDGET, FailureKind.STOPPED, FailureKind.TIMEOUT, FailureKind.IDLE, FailureKind.OUTPUT_LIMIT),
        *(FailureKind.LOST, FailureKind.AGENT_LIMIT),
    }
)
"""Ends that may come in the middle of a call."""

SHARE = 0.25
"""An agent that bounds itself and says its cost only at the end gets this share of what is left, and is then asked anew."""
SHARE_MIN_USD = 0.01
"""No agent is told to spend less than this: it would stop before it began."""


class RunBudget:
    """The money, tokens and time of one run."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._engine = driver, driver.engine
        self._budget = Budget()
        self._limited = False
        self._balance: Balance | None = None
        self._shares: dict[str, float] = {}
        """Dollars that agents which bound themselves may spend, by effect."""
        self._seen = Day()
        self._said: dict[str, int] = {}
        """Warnings that are not durable yet."""
        if self._engine.store.remote:
            self._loaded()  # later the store may be away

    @property
    def _doing(self) -> Doing:
        doing: Doing = self._driver.state.doing
        return doing

    @property
    def idle(self) -> bool:
        """Say whether nothing is reserved: then nothing can come free."""
        return self._balance is None or not self._balance.reservations

    def has_reserved(self, effect: EffectId) -> bool:
        """Say whether anything is reserved for a launch."""
        return self._balance is not None and effect in self._balance.reservations

    def covers(self, effect: RunAgent) -> bool:
        """Say whether anything this agent consumes is limited; asked before every start."""
        budget = self._driver.state.doing.budget
        if budget is not self._budget:
            self._budget, self._limited = budget, budget.is_set
            self._said.clear()
        return self._limited or effect.step_limits is not None or effect.attempt_limits is not None

    def time_left_s(self) -> float:
        """Return what is left of the run's working time."""
        wall_s = self._doing.budget.run.wall_s
        return math.inf if wall_s is None else wall_s - self._driver.worked_us() / US

    def limits_time(self, effect: RunAgent) -> bool:
        """Say whether it counts for its step or for the day how long an agent runs."""
        return self.covers(effect) and bool(self._timed(effect))

    def out_of_time(self, effect: RunAgent) -> Shortfall | None:
        """Return the budget of its step or the day that leaves it no time; None when there is some."""
        self._see_day()
        for scope, limit_s in self._timed(effect):
            spent_s = self._loaded().spent(scope.key).wall_s
            if spent_s >= limit_s:
                return Shortfall(scope=scope, kind="wall_s", spent=spent_s, reserved=0.0)
        return None

    def launch_left_s(self, effect: RunAgent) -> float | None:
        """Return how long a launch may run by the budgets of its step and the day; None without one."""
        if not self.limits_time(effect):
            return None
        spent = self._loaded().spent
        return max(0.0, min(limit_s - spent(scope.key).wall_s for scope, limit_s in self._timed(effect)))

    def _timed(self, effect: RunAgent) -> list[tuple[Scope, float]]:
        """Return the levels that limit how long a launch runs; the run's own time counts while anything works."""
        return [
            (scope, scope.limit.wall_s)
            for scope in self._scopes(effect)
            if scope.level != "run" and scope.limit.wall_s is not None
        ]

    # Before a start

    def reserve(self, effect: RunAgent) -> Shortfall | None:
        """Reserve what its first call may take; or return the budget that leaves no room for it."""
        if is_free(effect):
            return None
        balance, scopes = self._loaded(), self._scopes(effect)
        self._see_day()
        ahead = CALLS_AHEAD if self._speaks(effect) else 1
        short = balance.reserve(effect.id, scopes, self._need(effect, balance, scopes), ahead)
        return short if short is not None else self._reserve_day(effect)

    def adopt(self, effect: RunAgent) -> None:
        """Reserve for a launch that is at work, or was, since before it could be asked for: whatever it uses counts."""
        if not is_free(effect):
            self._loaded().adopt(effect.id, self._scopes(effect), self._next_call(effect))
            self._follow_day(effect)

    def release(self, effect: EffectId) -> None:
        """Give back what was reserved for a launch that does not start after all."""
        self._shares.pop(effect, None)
        if self._balance is not None and effect in self._balance.reservations:
            self._balance.release(effect)
            self._store_reservation(effect, (0.0, 0), (math.inf, NO_LIMIT_TOKENS), unwritten=True)

    def told_usd(self, effect: RunAgent) -> float | None:
        """Return what an agent that can bound itself is told it may spend; None where money is not limited."""
        balance = self._balance
        reserved = balance.reservations.get(effect.id) if balance is not None else None
        if balance is None or reserved is None:
            return None
        left = reserved.cost_usd + balance.room(reserved.scopes, "cost_usd")
        attempt = self._attempt_limit(effect).cost_usd
        if attempt is not None:
            left = min(left, attempt - balance.spent(attempt_key(effect.id)).cost_usd)
        left = min(left, self._shares.get(effect.id, math.inf))
        return None if left == math.inf else max(left, SHARE_MIN_USD)

    def _speaks(self, effect: RunAgent) -> bool:
        """Say whether it reports each call while it works, as far as that is known before it starts."""
        return hasattr(find_performer(effect.agent.performer), "meter") and effect.id not in self._shares

    def _need(self, effect: RunAgent, balance: Balance, scopes: tuple[Scope, ...]) -> Call:
        need, room = self._next_call(effect), balance.room(scopes, "cost_usd")
        self._shares.pop(effect.id, None)
        agent = find_performer(effect.agent.performer)
        blind = getattr(agent, "bounds_itself", False) and not effect.agent.options.get("prices")
        if not blind or need.cost_usd is None or room == math.inf:
            return need
        share = max(2 * need.cost_usd, room * SHARE)
        if share > room:
            return need
        self._shares[effect.id] = share - need.cost_usd
        return Call(share, need.tokens)

    # While it works, and at its end

    def meter(self, effect: RunAgent, reading: Reading) -> Failure | None:
        """Note what a launch at work has used; return why it has to stop, if it has to."""
        balance = self._loaded()
        if effect.id not in balance.reservations:
            self.adopt(effect)
        largest, used = Call(reading.largest_usd, reading.largest_tokens), Call(reading.cost_usd, reading.tokens)
        balance.learn(_model(effect), largest)
        if (failure := self._attempt_over(effect, used)) is not None:
            return failure
        self._see_day()
        short = balance.use(effect.id, used, self._next_call(effect))
        if short is None:
            short = self._follow_day(effect)
        self._warn(balance.reservations[effect.id].scopes)
        return None if short is None else Failure(kind=FailureKind.BUDGET, message=f"Stopped: {short}.")

    def settle(self, outcome: AgentEnded) -> None:
        """Count what a launch used as spent, once its end is durable."""
        balance, usage = self._balance, outcome.usage
        if balance is None:
            return  # Nothing was ever reserved.
        self._shares.pop(outcome.effect, None)
        effect = self._driver.slots.agent_effect(outcome.effect)
        reserved = balance.reservations.get(outcome.effect)
        used = Call(usage.cost_usd, usage.tokens) if usage is not None else Call()
        timed = effect is not None and self.limits_time(effect)
        balance.settle(
            outcome.effect, _keys(outcome.effect), used, (outcome.ended_us - outcome.started_us) / US if timed else None
        )
        if effect is not None and reserved is not None and self._is_cut(outcome, effect):
            # The call under way when it was stopped is paid for too, and nobody says how much it was.
            largest = self._largest_call(effect)
            for key in _keys(outcome.effect):
                balance.spent(key).add(largest.cost_usd or 0.0, largest.tokens)
        if effect is not None and usage is not None and balance.next_call(_model(effect)) == Call():
            balance.learn(_model(effect), _mean_call(usage))  # It said nothing while it worked.
        if reserved is not None:
            self._see_day()
            self._warn(reserved.scopes)

    def _is_cut(self, outcome: AgentEnded, effect: RunAgent) -> bool:
        """Say whether an agent that reports each call was stopped in the middle of one."""
        return outcome.failure is not None and outcome.failure.kind in CUT and self._speaks(effect)

    def _largest_call(self, effect: RunAgent) -> Call:
        need = self._next_call(effect)
        cost_usd = None if need.cost_usd is None else need.cost_usd / CALL_GROWTH
        return Call(cost_usd, None if need.tokens is None else math.ceil(need.tokens / CALL_GROWTH))

    def _attempt_over(self, effect: RunAgent, used: Call) -> Failure | None:
        limit, spent = self._attempt_limit(effect), self._loaded().spent(attempt_key(effect.id))
        for kind in KINDS:
            most, now = getattr(limit, kind), getattr(used, kind)
            if most is not None and now is not None and getattr(spent, kind) + now >= most:
                told = f"{say_amount(kind, getattr(spent, kind) + now)} of the {say_amount(kind, most)} that an attempt may spend"
                return Failure(kind=FailureKind.AGENT_LIMIT, message=f"Stopped after {told}.")
        return None

    def _warn(self, scopes: tuple[Scope, ...]) -> None:
        """Warn once when a good part of a budget is spent; what launches at work have used counts."""
        balance, doing = self._loaded(), self._doing
        for scope in scopes:
            for kind in (*KINDS, "wall_s"):
                limit = getattr(scope.limit, kind)
                what = f"{scope.key}.{kind}"
                if limit is None:
                    continue
                spent = getattr(balance.used(scope.key), kind)
                if what == "run.wall_s":
                    spent = self._driver.worked_us() / US
                percent = past_percent(spent, limit, max(doing.warned.get(what, 0), self._said.get(what, 0)))
                if percent is not None:
                    self._said[what] = percent
                    self._driver.note(BudgetWarned(what=what, percent=percent, spent=spent, limit=limit))

    # The day, which all processes share

    def others_may_release(self) -> bool:
        """Say whether other runs have reserved something of the day that may come free."""
        day = self._day()
        return self._doing.budget.day.is_set and day.reserved_usd + day.reserved_tokens > 0

    def _see_day(self) -> None:
        """Read what was spent today and what others have reserved, as the store has it now."""
        if self._doing.budget.day.is_set:
            day, spent = self._day(), self._loaded().spent("day")
            spent.cost_usd, spent.tokens = day.cost_usd + day.reserved_usd, day.tokens + day.reserved_tokens
            spent.wall_s = day.wall_s

    def _follow_day(self, effect: RunAgent) -> Shortfall | None:
        """Store the reservation of an agent at work; one is not stopped because the store is away for a while."""
        try:
            return self._reserve_day(effect)
        except StoreAway:
            return None

    def _reserve_day(self, effect: RunAgent) -> Shortfall | None:
        """Store the reservation for all processes to see; another one may have been quicker to take the rest of the day."""
        limit = self._doing.budget.day
        own = self._loaded().reservations[effect.id]
        most = (
            limit.cost_usd if limit.cost_usd is not None else math.inf,
            limit.tokens if limit.tokens is not None else NO_LIMIT_TOKENS,
        )
        if self._store_reservation(effect.id, (own.cost_usd, own.tokens), most, unwritten=not limit.is_set):
            return None
        day = self._day()
        kind = "cost_usd" if limit.cost_usd is not None else "tokens"
        spent = day.cost_usd if kind == "cost_usd" else day.tokens
        reserved = day.reserved_usd if kind == "cost_usd" else day.reserved_tokens
        return Shortfall(scope=Scope("day", "day", limit), kind=kind, spent=spent, reserved=reserved)

    def _store_reservation(
        self, effect: EffectId, amount: tuple[float, int], most: tuple[float, int], *, unwritten: bool
    ) -> bool:
        """Say whether it fits; `unwritten` is the answer when the store cannot be written now. Raises StoreAway if it matters."""
        store, now_us = self._engine.store, self._engine.clock.now_us()
        try:
            return store.reserve(self._driver.run.id, effect, amount, most, day_start_us(now_us), now_us)
        except StoreAway:
            if unwritten:
                return True
            raise
        except (DiskFull, StoreLocked):
            return unwritten

    def _day(self) -> Day:
        """Read the day but for this run's own reservations, as it was last known: the store judges again what is reserved."""
        with contextlib.suppress(*STORE_PASSES):
            self._seen = self._engine.store.day(day_start_us(self._engine.clock.now_us()), but_for=self._driver.run.id)
        return self._seen

    # Calls and levels

    def _loaded(self) -> Balance:
        """Return the balance, with everything that the run has spent so far."""
        if self._balance is None:
            self._balance = Balance()
            for row in self._engine.store.usage(self._driver.run.id):
                used = Call(row.usage.cost_usd, row.usage.tokens)
                self._balance.settle(row.effect, _keys(row.effect), used, row.usage.wall_s)
                self._balance.learn(row.agent, _mean_call(row.usage))
        return self._balance

    def _next_call(self, effect: RunAgent) -> Call:
        """Return the next call by the largest of its model; by the ledger, before this process has seen one."""
        balance = self._loaded()
        known = balance.next_call(_model(effect))
        return known if known != Call() else balance.next_call(effect.agent.name)

    def _scopes(self, effect: RunAgent) -> tuple[Scope, ...]:
        budget = self._doing.budget
        step = budget.step.override(effect.step_limits or Amounts())
        levels = (("step", f"step:{effect.unit}", step), ("run", "run", budget.run), ("day", "day", budget.day))
        return tuple(Scope(level, key, limit) for level, key, limit in levels if limit.is_set)

    def _attempt_limit(self, effect: RunAgent) -> Amounts:
        return self._doing.budget.attempt.override(effect.attempt_limits or Amounts())


def is_free(effect: RunAgent) -> bool:
    """Say whether the agent is known to cost nothing."""
    return "free" in getattr(find_performer(effect.agent.performer), "abilities", ())


def attempt_key(effect: EffectId) -> str:
    """Return the key under which an attempt's launches are counted together."""
    _, unit, launch = split_effect_id(effect)
    return f"attempt:{unit}/{'.'.join(launch.split('.')[:2])}"


def _mean_call(usage: Usage) -> Call:
    """Return the mean call of a launch that is over; its largest is not known any more."""
    calls = usage.calls or 1
    cost_usd = None if usage.cost_usd is None else usage.cost_usd / calls
    return Call(cost_usd, None if usage.tokens is None else math.ceil(usage.tokens / calls))


def _keys(effect: EffectId) -> tuple[str, str, str]:
    return "run", f"step:{unit_of(effect)}", attempt_key(effect)


def _model(effect: RunAgent) -> str:
    return f"{effect.agent.name}:{effect.agent.model or ''}"
