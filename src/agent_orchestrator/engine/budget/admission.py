"""Decides which agents of one run may start now, and when one at work has to stop: people, rate limits and budgets.

An agent that may not start is held: it stays wanted, the fact is journaled, and it is looked at again when the window
opens or when something that was reserved comes free. When nothing is reserved and the next start does not fit, the
run pauses. A run without a budget, while no account is refused, pays a comparison per start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.core.budget import say_amount
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import Event, HoldEnded, Paused, StopReason, UnitHeld
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import AgentEnded, Usage
from agent_orchestrator.core.limits import DAY_RECHECK_S, SHORTAGE_RECHECK_S, WAIT_RECHECK_S
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.budget.accounts import ROOM_RECHECK_S, WorkingAgents
from agent_orchestrator.engine.budget.rates import account_of, limited_account
from agent_orchestrator.errors import STORE_PASSES
from agent_orchestrator.store.port import RateWindow, StartingAgent, UsageRow

if TYPE_CHECKING:
    from agent_orchestrator.core.doing import Doing
    from agent_orchestrator.engine.driver import Driver


class Admission:
    """The gate of one run."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._engine = driver, driver.engine
        self._budget, self._working = driver.budget, WorkingAgents(driver)
        self._granted: set[EffectId] = set()
        """Held effects that may start as soon as that is durable."""
        self._asked: set[EffectId] = set()
        """Effects whose hold is not durable yet."""
        self._shortages: dict[EffectId, str] = {}
        """The flag that would mend it, by held effect."""
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def _doing(self) -> Doing:
        doing: Doing = self._driver.state.doing
        return doing

    # Before a start

    def watches(self, effect: RunAgent) -> bool:
        """Say whether the start of this effect has to be asked for at all."""
        doing = self._driver.state.doing
        if self._working.counted or self._granted or doing.holds or doing.taken:
            return True
        return self._budget.covers(effect) or self._engine.rates.any_closed

    def admits(self, effect: RunAgent) -> bool:
        """Say whether an agent may start now; if not, that becomes a fact."""
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

    def plan_starts(self) -> tuple[StartingAgent, ...]:
        """Name the agents that are wanted anew: the append that makes them so counts them, and saves a question per start."""
        if not self._working.counted or self._driver.state.lifecycle.halting:
            return ()
        doing = self._doing
        wanted = [doing.of(unit) for unit in doing.changes() if unit not in doing.holds and unit not in doing.taken]
        return self._working.plan([effect for effect in wanted if isinstance(effect, RunAgent)])

    def end_tick(self) -> None:
        """Look after those that did not start in the tick: who is counted, who waits, and how long the run may work."""
        doing = self._driver.state.doing
        if self._working.counted:
            self._working.drop_plans()
        if doing.holds or self._granted:
            self.look_again()
        if doing.budget.run.wall_s is not None:
            self.watch_time()

    def adopt(self, effect: RunAgent) -> None:
        """Count what an agent uses that is at work, or was, since before this process."""
        if self._budget.covers(effect):
            self._budget.adopt(effect)
        self._working.adopt(effect)
        if self._doing.is_held(effect.id):  # It was started, and the process died before it could say so.
            self._driver.note(HoldEnded(unit=effect.unit, effect=effect.id))

    def holds_true(self, event: Event) -> bool:
        """Say whether a fact that was noted may still be written down: the run may have moved on since."""
        running = bool(self._driver.state.lifecycle.running)
        if isinstance(event, UnitHeld):
            self._asked.discard(event.hold.effect)
            return self._doing.wants(event.hold.effect)
        if isinstance(event, HoldEnded):
            hold = self._doing.holds.get(event.unit)
            if hold is not None and hold.effect == event.effect and hold.why is HoldReason.SHORTAGE:
                return True
            true = running and self._doing.is_held(event.effect)
            if not true:
                self._granted.discard(event.effect)
                self._give_back(event.effect)
            return true
        return running if isinstance(event, Paused) else True

    def look_again(self) -> None:
        """Let those start that may now; pause the run when nothing can come free that the others wait for."""
        self._wake_in(None)
        for effect_id in [one for one in self._granted if not self._doing.wants(one)]:
            self._granted.discard(effect_id)
            self._give_back(effect_id)
        if not self._driver.state.lifecycle.running or not self._driver.durable:
            return
        wake_s: float | None = None
        short: Hold | None = None
        for unit, known in list(self._doing.holds.items()):
            effect = self._doing.of(unit)
            if not isinstance(effect, RunAgent) or effect.id in self._granted or effect.id in self._asked:
                continue
            if known.why is HoldReason.SHORTAGE and self._driver.slots.has(unit):
                continue  # It may start, and tries to.
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
            elif hold.why is HoldReason.SHORTAGE:
                wake_s = min(SHORTAGE_RECHECK_S, wake_s or SHORTAGE_RECHECK_S)
            elif hold.why is HoldReason.ACCOUNT:
                wake_s = min(ROOM_RECHECK_S, wake_s or ROOM_RECHECK_S)
            short = short or (hold if hold.why is HoldReason.BUDGET else None)
        if short is not None and not self._granted and self._budget.idle:
            if self._budget.others_may_release():
                wake_s = min(wake_s or DAY_RECHECK_S, DAY_RECHECK_S)
            else:
                way = f"raise it with: orc resume {self._driver.run.id} {self._shortages.get(short.effect, '')}"
                self._driver.note(Paused(reason=f"{short.reason}; {way.rstrip()}", stop=StopReason.BUDGET_EXHAUSTED))
        self._wake_in(wake_s)

    def _judge(self, effect: RunAgent) -> Hold | None:
        """Return why an agent may not start now; if it may, reserve what it needs."""
        try:
            return self._judge_known(effect)
        except STORE_PASSES as error:  # Nobody knows what others spend, and which accounts are refused.
            self._give_back(effect.id)
            return Hold(effect=effect.id, why=HoldReason.SHORTAGE, reason=str(error).rstrip("."))

    def _judge_known(self, effect: RunAgent) -> Hold | None:
        if effect.unit in self._doing.taken:
            way = f"continue with: orc attach {self._driver.run.id} {effect.unit}"
            return Hold(effect=effect.id, why=HoldReason.PERSON, reason=f"a person has taken it over; {way}")
        rates = self._engine.rates
        closed = rates.closed(self._limited(effect), effect.id) if rates.any_closed else None
        if closed is not None:
            window, until_us = closed
            return Hold(
                effect=effect.id,
                why=HoldReason.RATE_LIMIT,
                reason="the account's rate limit is reached",
                until_us=until_us,
                account=account_of(effect.agent),
                window=window.name,
            )
        full = self._working.start(effect)
        if full is not None or not self._budget.covers(effect):
            return full
        short = self._judge_budget(effect)
        if short is not None:
            self._working.end(effect.id)
        return short

    def _judge_budget(self, effect: RunAgent) -> Hold | None:
        if self._budget.time_left_s() <= 0:
            self._shortages[effect.id] = "--max-time TIME"
            return Hold(effect=effect.id, why=HoldReason.BUDGET, reason=self._time_is_over())
        short = self._budget.out_of_time(effect) or self._budget.reserve(effect)
        if short is None:
            self._shortages.pop(effect.id, None)
            return None
        self._budget.release(effect.id)
        flags = {
            ("run", "cost_usd"): "--budget-usd N",
            ("run", "tokens"): "--budget-tokens N",
            ("day", "cost_usd"): "--day-budget-usd N",
        }
        self._shortages[effect.id] = flags.get((short.scope.level, short.kind), "")
        return Hold(effect=effect.id, why=HoldReason.BUDGET, reason=str(short))

    def _give_back(self, effect: EffectId) -> None:
        """Give back what was set aside for an agent that does not start after all."""
        self._budget.release(effect)
        self._working.end(effect)

    def _wake_in(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._engine.loop.call_later(max(0.0, seconds), self.look_again)

    # While it works, and at its end

    def meter(self, effect: RunAgent, reading: Reading) -> Failure | None:
        """Note what a launch at work has used; return why it has to stop, if it has to."""
        failure = self._budget.meter(effect, reading)
        if self._doing.holds:
            self._engine.loop.call_soon(self.look_again)
        return failure

    def usage_of(self, outcome: AgentEnded, effect: RunAgent | None) -> UsageRow:
        """Return the line of the ledger for a launch; its running time stands there where it is limited."""
        usage, agent = outcome.usage or Usage(), self._driver.slots.agent_of(outcome.effect)
        if effect is not None and self._budget.limits_time(effect):
            usage = msgspec.structs.replace(usage, wall_s=(outcome.ended_us - outcome.started_us) / US)
        return UsageRow(effect=outcome.effect, unit=unit_of(outcome.effect), agent=agent, usage=usage)

    def refusals(self, failure: Failure, effect: RunAgent | None) -> tuple[RateWindow, ...]:
        """Return the window that a refused launch closes, for all runs on its account."""
        if failure.kind is not FailureKind.RATE_LIMITED or effect is None:
            return ()
        return (self._engine.rates.refused(self._limited(effect), failure),)

    def _limited(self, effect: RunAgent) -> str:
        return limited_account(effect.agent, self._engine.world.key_of(effect.agent, self._driver.run.context.pass_env))

    def accounts_for(self, effect: EffectId) -> bool:
        """Say whether the store has anything set aside for a launch, or counts its agent."""
        return self._budget.has_reserved(effect) or (self._working.counted and self._working.counts(effect))

    def settle(self, outcome: AgentEnded) -> None:
        """Count what a launch used as spent, and its agent no more, once its end is durable."""
        self._budget.settle(outcome)
        if self._working.counted:
            self._working.forget(outcome.effect)

    def watch_time(self) -> None:
        """Arm the end of the run's working time; nothing is armed while nothing works."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._doing.budget.run.wall_s is not None and self._doing.at_work:
            left_s = max(0.0, self._budget.time_left_s())
            self._deadline = self._engine.loop.call_later(min(left_s, WAIT_RECHECK_S), self._look_at_time)

    def _look_at_time(self) -> None:
        if self._budget.time_left_s() > 0:
            self.watch_time()
        else:
            self._driver.slots.stop_agents(Failure(kind=FailureKind.BUDGET, message=f"Stopped: {self._time_is_over()}."))

    def _time_is_over(self) -> str:
        return f"the run's time of {say_amount('wall_s', self._doing.budget.run.wall_s or 0.0)} is used up"

    def close(self) -> None:
        """End all timers."""
        self._wake_in(None)
        if self._deadline is not None:
            self._deadline.cancel()
