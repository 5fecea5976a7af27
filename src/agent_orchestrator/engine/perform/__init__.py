"""Performs effects: one kind of work per kind of effect. `begin` picks it; `Slots` holds it while it is in flight.

Every work that is started ends in exactly one call of `finished`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from agent_orchestrator.agents import find_performer
from agent_orchestrator.agents.adapter import InProcessAgent
from agent_orchestrator.core.effects import AskHuman, AwaitGates, Checkpoint, Effect, Merge, ReadFile, RunAgent, RunCheck, Wait
from agent_orchestrator.core.inputs import Outcome
from agent_orchestrator.engine.perform.agent import AgentWork
from agent_orchestrator.engine.perform.check import CheckWork
from agent_orchestrator.engine.perform.checkpoint import SavingWork
from agent_orchestrator.engine.perform.human import HumanWork
from agent_orchestrator.engine.perform.merge import MergeWork
from agent_orchestrator.engine.perform.played import PlayedWork
from agent_orchestrator.engine.perform.waits import GatesWork, ReadWork, TimerWork
from agent_orchestrator.engine.perform.work import EffectWork

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

__all__ = ["EffectWork", "begin"]


def begin(
    driver: Driver,
    effect: Effect,
    finished: Callable[[Outcome | None], None],
    *,
    inherited: bool,
    same_boot: bool,
) -> EffectWork:
    """The work for an effect; `inherited` when an earlier process may have started it."""
    match effect:
        case RunAgent():
            agent = find_performer(effect.agent.performer)
            if hasattr(agent, "act"):
                played = cast(InProcessAgent, agent)
                return PlayedWork(driver, effect, finished, played, inherited=inherited)
            return AgentWork(driver, effect, finished, agent, inherited=inherited, same_boot=same_boot)
        case RunCheck():
            return CheckWork(driver, effect, finished, inherited=inherited, same_boot=same_boot)
        case AskHuman():
            return HumanWork(driver, effect, finished)
        case Wait():
            return TimerWork(driver, effect, finished)
        case AwaitGates():
            return GatesWork(driver, effect, finished)
        case ReadFile():
            return ReadWork(driver, effect, finished)
        case Checkpoint():
            return SavingWork(driver, effect, finished)
        case Merge():
            return MergeWork(driver, effect, finished, inherited=inherited, same_boot=same_boot)
