"""What one run's agents may spend: claims before they start, metering while they work, settling when they are over.

It knows the limits from `state.doing`, what was spent from the ledger, and what other processes spend in a day from the
store. It starts, holds and stops nothing: `admission` does, by what is answered here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from agent_orchestrator.agents import find_performer
from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.core.budget import Amounts, Limits, say_amount
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import BudgetWarned
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import AgentEnded, Usage
from agent_orchestrator.core.purse import CALL_GROWTH, CALLS_AHEAD, KINDS, Call, Purse, Scope, Shortage, past_percent
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import DiskFull, StoreLocked

if TYPE_CHECKING:
    from agent_orchestrator.core.doing import Doing
    from agent_orchestrator.engine.driver import Driver

DAY_US = 86_400 * US
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


class Allowance:
    """The money, tokens and time of one run."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._engine = driver, driver.engine
        self._limits = Limits()
        self._limited = False
        self._purse: Purse | None = None
        self._shares: dict[str, float] = {}
        """What agents that bound themselves may spend, by effect."""
        self._said: dict[str, int] = {}
        """Warnings that are not durable yet."""

    @property
    def _doing(self) -> Doing:
        doing: Doing = self._driver.state.doing
        return doing

    @property
    def idle(self) -> bool:
        """Whether nothing is set aside: then nothing can come free."""
        return self._purse is None or not self._purse.claims

    def is_claimed(self, effect: str) -> bool:
        """Whether anything is set aside for a launch."""
        return self._purse is not None and effect in self._purse.claims

    def limits(self, effect: RunAgent) -> bool:
        """Whether anything this agent consumes is limited; asked before every start."""
        limits = self._doing.limits
        if limits is not self._limits:
            self._limits, self._limited = limits, limits.any
            self._said.clear()
        return self._limited or effect.step_limits is not None or effect.attempt_limits is not None

    def time_left_s(self) -> float:
        """What is left of the run's working time."""
        wall_s = self._doing.limits.run.wall_s
        return math.inf if wall_s is None else wall_s - self._driver.worked_us() / US

    def times(self, effect: RunAgent) -> bool:
        """Whether it counts for its step or for the day how long it runs."""
        return self.limits(effect) and any(limit.wall_s is not None for _, _, limit in self._timed(effect))

    def out_of_time(self, effect: RunAgent) -> Shortage | None:
        """The limit on its step or the day that leaves it no time; None when there is some."""
        self._see_day()
        for level, key, limit in self._timed(effect):
            spent_s = self._ready().spent(key).wall_s
            if limit.wall_s is not None and spent_s >= limit.wall_s:
                return Shortage(scope=Scope(level, key, limit), kind="wall_s", spent=spent_s, claimed=0.0)
        return None

    def run_left_s(self, effect: RunAgent) -> float | None:
        """How long the launch may run by the limits on its step and the day; None without one."""
        spent = self._ready().spent
        left = [limit.wall_s - spent(key).wall_s for _, key, limit in self._timed(effect) if limit.wall_s is not None]
        return max(0.0, min(left)) if left else None

    def _timed(self, effect: RunAgent) -> tuple[tuple[str, str, Amounts], ...]:
        limits = self._doing.limits
        step = limits.step.laid_under(effect.step_limits or Amounts())
        return (("step", f"step:{effect.unit}", step), ("day", "day", limits.day))

    # Before a start

    def claim(self, effect: RunAgent) -> Shortage | None:
        """Sets aside what its first call may take; or says which limit leaves no room for it."""
        if is_free(effect):
            return None
        purse, scopes = self._ready(), self._scopes(effect)
        self._see_day()
        ahead = CALLS_AHEAD if self._speaks(effect) else 1
        short = purse.claim(effect.id, scopes, self._need(effect, purse, scopes), ahead)
        return short if short is not None else self._earmark(effect)

    def adopt(self, effect: RunAgent) -> None:
        """It is at work, or was, since before it could be asked for: whatever it uses counts."""
        if not is_free(effect):
            self._ready().adopt(effect.id, self._scopes(effect), self._next_call(effect))
            self._earmark(effect)

    def give_back(self, effect: str) -> None:
        """It does not start after all."""
        self._shares.pop(effect, None)
        if self._purse is not None and effect in self._purse.claims:
            self._purse.release(effect)
            self._mark(effect, (0.0, 0), (math.inf, NO_LIMIT_TOKENS), unwritten=True)

    def told_usd(self, effect: RunAgent) -> float | None:
        """What an agent that can bound itself is told it may spend; None where money is not limited."""
        purse = self._purse
        claim = purse.claims.get(effect.id) if purse is not None else None
        if purse is None or claim is None:
            return None
        left = claim.cost_usd + purse.room(claim.scopes, "cost_usd")
        attempt = self._attempt_limit(effect).cost_usd
        if attempt is not None:
            left = min(left, attempt - purse.spent(attempt_key(effect.id)).cost_usd)
        left = min(left, self._shares.get(effect.id, math.inf))
        return None if left == math.inf else max(left, SHARE_MIN_USD)

    def _speaks(self, effect: RunAgent) -> bool:
        """Whether it says what each call took while it works, as far as it is known before it starts."""
        return hasattr(find_performer(effect.agent.performer), "meter") and effect.id not in self._shares

    def _need(self, effect: RunAgent, purse: Purse, scopes: tuple[Scope, ...]) -> Call:
        need, room = self._next_call(effect), purse.room(scopes, "cost_usd")
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

    def metered(self, effect: RunAgent, reading: Reading) -> Failure | None:
        """A launch at work has used so much; why it has to stop, if it has to."""
        purse = self._ready()
        if effect.id not in purse.claims:
            self.adopt(effect)
        largest, used = Call(reading.largest_usd, reading.largest_tokens), Call(reading.cost_usd, reading.tokens)
        purse.learn(_model(effect), largest)
        if (failure := self._attempt_over(effect, used)) is not None:
            return failure
        self._see_day()
        short = purse.use(effect.id, used, self._next_call(effect))
        if short is None:
            short = self._earmark(effect)
        self._warn(purse.claims[effect.id].scopes)
        return None if short is None else Failure(kind=FailureKind.BUDGET, message=f"Stopped: {short}.")

    def settle(self, outcome: AgentEnded, effect: RunAgent | None) -> None:
        """The end of a launch is durable: what it used is spent."""
        self._shares.pop(outcome.effect, None)
        purse, usage = self._purse, outcome.usage
        if purse is None:
            return
        claim = purse.claims.get(outcome.effect)
        used = Call(usage.cost_usd, usage.tokens) if usage is not None else Call()
        timed = effect is not None and self.times(effect)
        purse.settle(outcome.effect, _keys(outcome.effect), used, (outcome.ended_us - outcome.started_us) / US if timed else None)
        if effect is not None and claim is not None and self._is_cut(outcome, effect):
            # The call under way when it was stopped is paid for too, and nobody says how much it was.
            largest = self._largest_call(effect)
            for key in _keys(outcome.effect):
                purse.spent(key).add(largest.cost_usd or 0.0, largest.tokens)
        if effect is not None and usage is not None and purse.next_call(_model(effect)) == Call():
            purse.learn(_model(effect), _mean_call(usage))  # It said nothing while it worked.
        if claim is not None:
            self._see_day()
            self._warn(claim.scopes)

    def _is_cut(self, outcome: AgentEnded, effect: RunAgent) -> bool:
        """Whether an agent that says what each call took was stopped in the middle of one."""
        return outcome.failure is not None and outcome.failure.kind in CUT and self._speaks(effect)

    def _largest_call(self, effect: RunAgent) -> Call:
        need = self._next_call(effect)
        cost_usd = None if need.cost_usd is None else need.cost_usd / CALL_GROWTH
        return Call(cost_usd, None if need.tokens is None else math.ceil(need.tokens / CALL_GROWTH))

    def _attempt_over(self, effect: RunAgent, used: Call) -> Failure | None:
        limit, spent = self._attempt_limit(effect), self._ready().spent(attempt_key(effect.id))
        for kind in KINDS:
            most, now = getattr(limit, kind), getattr(used, kind)
            if most is not None and now is not None and getattr(spent, kind) + now >= most:
                told = f"{say_amount(kind, getattr(spent, kind) + now)} of the {say_amount(kind, most)} that an attempt may spend"
                return Failure(kind=FailureKind.AGENT_LIMIT, message=f"Stopped after {told}.")
        return None

    def _warn(self, scopes: tuple[Scope, ...]) -> None:
        """Says once when a good part of a limit is spent; what launches at work have used counts."""
        purse, doing = self._ready(), self._doing
        for scope in scopes:
            for kind in (*KINDS, "wall_s"):
                limit = getattr(scope.limit, kind)
                what = f"{scope.key}.{kind}"
                if limit is None:
                    continue
                spent = getattr(purse.used(scope.key), kind)
                if what == "run.wall_s":
                    spent = self._driver.worked_us() / US
                percent = past_percent(spent, limit, max(doing.warned.get(what, 0), self._said.get(what, 0)))
                if percent is not None:
                    self._said[what] = percent
                    self._driver.note(BudgetWarned(what=what, percent=percent, spent=spent, limit=limit))

    # The day, which all processes share

    def others_may_free(self) -> bool:
        """Whether other runs have something of the day set aside that may come free."""
        day = self._engine.store.day(self._today_us(), but_for=self._driver.run.id)
        return self._doing.limits.day.any and day.earmarked_usd + day.earmarked_tokens > 0

    def _see_day(self) -> None:
        """What was spent today and what others have set aside, as the store has it now."""
        if self._doing.limits.day.any:
            day = self._engine.store.day(self._today_us(), but_for=self._driver.run.id)
            spent = self._ready().spent("day")
            spent.cost_usd, spent.tokens = day.cost_usd + day.earmarked_usd, day.tokens + day.earmarked_tokens
            spent.wall_s = day.wall_s

    def _earmark(self, effect: RunAgent) -> Shortage | None:
        """Sets the claim aside for all processes to see; another one may have been quicker to take the rest of the day."""
        limit = self._doing.limits.day
        claim = self._ready().claims[effect.id]
        most = (
            limit.cost_usd if limit.cost_usd is not None else math.inf,
            limit.tokens if limit.tokens is not None else NO_LIMIT_TOKENS,
        )
        if self._mark(effect.id, (claim.cost_usd, claim.tokens), most, unwritten=not limit.any):
            return None
        day = self._engine.store.day(self._today_us(), but_for=self._driver.run.id)
        kind = "cost_usd" if limit.cost_usd is not None else "tokens"
        spent = day.cost_usd if kind == "cost_usd" else day.tokens
        claimed = day.earmarked_usd if kind == "cost_usd" else day.earmarked_tokens
        return Shortage(scope=Scope("day", "day", limit), kind=kind, spent=spent, claimed=claimed)

    def _mark(self, effect: str, amount: tuple[float, int], most: tuple[float, int], *, unwritten: bool) -> bool:
        """Whether it fits; `unwritten` is the answer when the store cannot be written now."""
        store, now_us = self._engine.store, self._engine.clock.now_us()
        try:
            return store.earmark(self._driver.run.id, effect, amount, most, self._today_us(), now_us)
        except (DiskFull, StoreLocked):
            return unwritten

    def _today_us(self) -> int:
        now_us = self._engine.clock.now_us()
        return now_us - now_us % DAY_US

    # What is known

    def _ready(self) -> Purse:
        """The purse, with everything in it that the run has spent so far."""
        if self._purse is None:
            self._purse = Purse()
            for row in self._engine.store.usage(self._driver.run.id):
                used = Call(row.usage.cost_usd, row.usage.tokens)
                self._purse.settle(row.effect, _keys(row.effect), used, row.usage.wall_s)
                self._purse.learn(row.agent, _mean_call(row.usage))
        return self._purse

    def _next_call(self, effect: RunAgent) -> Call:
        """By the largest call of its model; by what the ledger says of the agent, before this process has seen one."""
        purse = self._ready()
        known = purse.next_call(_model(effect))
        return known if known != Call() else purse.next_call(effect.agent.name)

    def _scopes(self, effect: RunAgent) -> tuple[Scope, ...]:
        limits = self._doing.limits
        step = limits.step.laid_under(effect.step_limits or Amounts())
        levels = (("step", f"step:{effect.unit}", step), ("run", "run", limits.run), ("day", "day", limits.day))
        return tuple(Scope(level, key, limit) for level, key, limit in levels if limit.any)

    def _attempt_limit(self, effect: RunAgent) -> Amounts:
        return self._doing.limits.attempt.laid_under(effect.attempt_limits or Amounts())


def is_free(effect: RunAgent) -> bool:
    """Whether the agent is known to cost nothing."""
    return "free" in getattr(find_performer(effect.agent.performer), "abilities", ())


def attempt_key(effect: str) -> str:
    """The key under which an attempt's launches are counted together."""
    _, unit, launch = effect.split("/", 2)
    return f"attempt:{unit}/{'.'.join(launch.split('.')[:2])}"


def _mean_call(usage: Usage) -> Call:
    """What a call of a launch that is over took; its largest is not known any more."""
    calls = usage.calls or 1
    cost_usd = None if usage.cost_usd is None else usage.cost_usd / calls
    return Call(cost_usd, None if usage.tokens is None else math.ceil(usage.tokens / calls))


def _keys(effect: str) -> tuple[str, str, str]:
    return "run", f"step:{effect.split('/', 2)[1]}", attempt_key(effect)


def _model(effect: RunAgent) -> str:
    return f"{effect.agent.name}:{effect.agent.model or ''}"
