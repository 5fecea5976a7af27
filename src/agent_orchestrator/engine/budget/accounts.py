"""The agents of one run at work, as the store counts them for the limits of accounts; a store of one machine has none."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.engine.budget.rates import account_of
from agent_orchestrator.errors import STORE_PASSES
from agent_orchestrator.store.port import StartingAgent

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

ROOM_RECHECK_S = 2.0
"""Between two looks whether an account has room again: agents of other hosts end without a word to this one."""


class WorkingAgents:
    """The agents of one run that the store was told of."""

    def __init__(self, driver: Driver) -> None:
        self._run, self._known = driver.run.id, driver.engine.store.accounts
        self._told: set[EffectId] = set()
        self._ended: set[EffectId] = set()
        """Ends that the store could not be told of yet."""
        self._planned: set[EffectId] = set()
        """Agents that the append of this turn counts, as far as their accounts have no limit."""
        self.counted = self._known is not None
        """True where anybody counts them."""

    def plan(self, effects: Sequence[RunAgent]) -> tuple[StartingAgent, ...]:
        """Name agents as an append counts them; whichever does not start right after it has to be dropped."""
        new = [effect for effect in effects if effect.id not in self._told]
        self._planned = {effect.id for effect in new}
        return tuple([StartingAgent(effect.id, account_of(effect.agent)) for effect in new])

    def drop_plans(self) -> None:
        """Count those no more that were planned and have not started."""
        if self._planned:
            left, self._planned = self._planned, set()
            self._ended |= left
            for one in left:
                self.end(one)

    def start(self, effect: RunAgent) -> Hold | None:
        """Count an agent that is to start, or return why it may not; raises what keeps the store from answering."""
        if self._known is None or effect.id in self._told:
            return None
        self._planned.discard(effect.id)
        for one in [*self._ended]:
            self.end(one)
        account = account_of(effect.agent)
        if self._known.start(self._run, effect.id, account):
            self._told.add(effect.id)
            return None
        reason = f"as many agents of account {account} work as `orc workers limit --account` allows"
        return Hold(effect=effect.id, why=HoldReason.ACCOUNT, reason=reason, account=account)

    def adopt(self, effect: RunAgent) -> None:
        """Count an agent that is at work, or was, since before this process; while the store is away, nobody starts another."""
        if self._known is not None:
            self._planned.discard(effect.id)
            with contextlib.suppress(*STORE_PASSES):
                self._known.start(self._run, effect.id, account_of(effect.agent), adopted=True)
            self._told.add(effect.id)

    def counts(self, effect: EffectId) -> bool:
        """Say whether the store was told of an agent."""
        return effect in self._told

    def forget(self, effect: EffectId) -> None:
        """Count an agent no more whose end is durable: the store knows with that."""
        self._told.discard(effect)

    def end(self, effect: EffectId) -> None:
        """Count an agent no more that does not start after all."""
        if self._known is None or effect not in self._told | self._ended:
            return
        self._told.discard(effect)
        self._ended.add(effect)
        with contextlib.suppress(*STORE_PASSES):
            self._known.end(self._run, effect)
            self._ended.discard(effect)
