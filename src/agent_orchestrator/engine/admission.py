"""Decides which agents of one run may start now, and when one at work has to stop: rate limits and budgets.

An agent that may not start is held: it stays wanted, the fact is journaled, and it is looked at again when the window
opens or when something that was set aside comes free. When nothing is set aside and the next start does not fit, the
run pauses. A run without limits, while no account is refused, pays a comparison per start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.core.budget import Hold, Why, say_amount
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import Event, HoldEnded, Paused, StopReason, UnitHeld
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.core.limits import DAY_RECHECK_S, WAIT_RECHECK_S
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.allowance import Allowance
from agent_orchestrator.engine.rates import account_of
from agent_orchestrator.store.port import RateWindow

if TYPE_CHECKING:
    from agent_orchestrator.core.doing import Doing
    from agent_orchestrator.engine.driver import Driver


class Admission:
    """The gate of one run."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._engine = driver, driver.engine
        self._allowance = Allowance(driver)
        self._granted: set[str] = set()
        """Held effects that may start as soon as that is durable."""
        self._asked: set[str] = set()
        """Effects whose hold is not durable yet."""
        self._shortages: dict[str, str] = {}
        """The flag that would mend it, by held effect."""
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def _doing(self) -> Doing:
        doing: Doing = self._driver.state.doing
        return doing

    # Before a start

    def watches(self, effect: RunAgent) -> bool:
        """Whether the start of this effect has to be asked for at all."""
        return self._allowance.limits(effect) or self._engine.rates.any_closed or self.pending or bool(self._doing.holds)

    @property
    def pending(self) -> bool:
        """Whether something may start that has not yet."""
        return bool(self._granted)

    def admits(self, effect: RunAgent) -> bool:
        """Whether it may start now; if not, that becomes a fact."""
        if effect.id in self._granted:
            self._granted.discard(effect.id)
            return True
        if self._doing.is_held(effect.id) or effect.id in self._asked:
            return False  # Looked at again after this tick: that it may start has to be durable first.
        hold = self._judge(effect)
        if hold is None:
            return True
        self._asked.add(effect.id)
        self._driver.note(UnitHeld(unit=effect.unit, hold=hold))
        return False

    def adopt(self, effect: RunAgent) -> None:
        """It is at work, or was, since before this process: whatever it uses counts."""
        if self._allowance.limits(effect):
            self._allowance.adopt(effect)

    def told_usd(self, effect: RunAgent) -> float | None:
        """What an agent that can bound itself is told it may spend; None where money is not limited."""
        return self._allowance.told_usd(effect)

    def holds_true(self, event: Event) -> bool:
        """Whether a fact that was noted may still be written down: the run may have moved on since."""
        running = bool(self._driver.state.lifecycle.running)
        if isinstance(event, UnitHeld):
            self._asked.discard(event.hold.effect)
            return self._doing.wants(event.hold.effect)
        if isinstance(event, HoldEnded):
            true = running and self._doing.is_held(event.effect)
            if not true:
                self._granted.discard(event.effect)
                self._allowance.give_back(event.effect)
            return true
        return running if isinstance(event, Paused) else True

    def look_again(self) -> None:
        """Lets those start that may now; pauses the run when nothing can come free that the others wait for."""
        self._wake_in(None)
        for effect_id in [one for one in self._granted if not self._doing.wants(one)]:
            self._granted.discard(effect_id)
            self._allowance.give_back(effect_id)
        if not self._driver.state.lifecycle.running or not self._driver.durable:
            return
        wake_s: float | None = None
        short: Hold | None = None
        for unit, known in list(self._doing.holds.items()):
            effect = self._doing.of(unit)
            if not isinstance(effect, RunAgent) or effect.id in self._granted or effect.id in self._asked:
                continue
            hold = self._judge(effect)
            if hold is None:
                self._granted.add(effect.id)
                self._driver.note(HoldEnded(unit=unit, effect=effect.id))
                continue
            if (hold.why, hold.until_us, hold.window) != (known.why, known.until_us, known.window):
                self._driver.note(UnitHeld(unit=unit, hold=hold))
            if hold.until_us is not None:
                left_s = (hold.until_us - self._engine.clock.now_us()) / US
                wake_s = min(left_s, WAIT_RECHECK_S) if wake_s is None else min(left_s, wake_s)
            short = short or (hold if hold.why is Why.BUDGET else None)
        if short is not None and not self._granted and self._allowance.idle:
            if self._allowance.others_may_free():
                wake_s = min(wake_s or DAY_RECHECK_S, DAY_RECHECK_S)
            else:
                way = f"raise it with: orc resume {self._driver.run.id} {self._shortages.get(short.effect, '')}"
                self._driver.note(Paused(reason=f"{short.reason}; {way.rstrip()}", stop=StopReason.BUDGET_EXHAUSTED))
        self._wake_in(wake_s)

    def _judge(self, effect: RunAgent) -> Hold | None:
        """Why it may not start now; if it may, what it needs is set aside."""
        account = account_of(effect.agent)
        closed = self._engine.rates.closed(account, effect.id)
        if closed is not None:
            window, until_us = closed
            return Hold(
                effect=effect.id,
                why=Why.RATE_LIMIT,
                reason="the account's rate limit is reached",
                until_us=until_us,
                account=account,
                window=window.name,
            )
        if not self._allowance.limits(effect):
            return None
        if self._allowance.time_left_s() <= 0:
            self._shortages[effect.id] = "--max-time TIME"
            return Hold(effect=effect.id, why=Why.BUDGET, reason=self._time_is_over())
        short = self._allowance.out_of_time(effect) or self._allowance.claim(effect)
        if short is None:
            self._shortages.pop(effect.id, None)
            return None
        self._allowance.give_back(effect.id)
        flags = {
            ("run", "cost_usd"): "--budget-usd N",
            ("run", "tokens"): "--budget-tokens N",
            ("day", "cost_usd"): "--day-budget-usd N",
        }
        self._shortages[effect.id] = flags.get((short.scope.level, short.kind), "")
        return Hold(effect=effect.id, why=Why.BUDGET, reason=str(short))

    def _wake_in(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._engine.loop.call_later(max(0.0, seconds), self.look_again)

    # While it works, and at its end

    def metered(self, effect: RunAgent, reading: Reading) -> Failure | None:
        """A launch at work has used so much; why it has to stop, if it has to."""
        failure = self._allowance.metered(effect, reading)
        if self._doing.holds:
            self._engine.loop.call_soon(self.look_again)
        return failure

    def run_left_s(self, effect: RunAgent) -> float | None:
        """How long a launch may run by the limits on its step and the day; None without one."""
        return self._allowance.run_left_s(effect) if self._allowance.times(effect) else None

    def times(self, effect: RunAgent) -> bool:
        """Whether it has to be known how long a launch ran."""
        return self._allowance.times(effect)

    def meters(self, effect: RunAgent) -> bool:
        """Whether it has to be known what a launch at work uses."""
        return self._allowance.limits(effect)

    def is_claimed(self, effect: str) -> bool:
        """Whether anything is set aside for a launch."""
        return self._allowance.is_claimed(effect)

    def settle(self, outcome: AgentEnded) -> None:
        """The end of a launch is durable."""
        self._allowance.settle(outcome, self._driver.slots.agent_effect(outcome.effect))

    def refusals(self, outcome: AgentEnded) -> tuple[RateWindow, ...]:
        """The window that a refused launch closes, for all runs on its account."""
        failure, effect = outcome.failure, self._driver.slots.agent_effect(outcome.effect)
        if failure is None or failure.kind is not FailureKind.RATE_LIMITED or effect is None:
            return ()
        return (self._engine.rates.refused(account_of(effect.agent), failure),)

    def watch_time(self) -> None:
        """Arms the end of the run's working time; called after each tick, and nothing is armed while nothing works."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._doing.limits.run.wall_s is not None and self._doing.at_work:
            left_s = max(0.0, self._allowance.time_left_s())
            self._deadline = self._engine.loop.call_later(min(left_s, WAIT_RECHECK_S), self._look_at_time)

    def _look_at_time(self) -> None:
        if self._allowance.time_left_s() > 0:
            self.watch_time()
        else:
            self._driver.slots.stop_agents(Failure(kind=FailureKind.BUDGET, message=f"Stopped: {self._time_is_over()}."))

    def _time_is_over(self) -> str:
        return f"the run's time of {say_amount('wall_s', self._doing.limits.run.wall_s or 0.0)} is over"

    def close(self) -> None:
        """This process lets the run go."""
        self._wake_in(None)
        if self._deadline is not None:
            self._deadline.cancel()
