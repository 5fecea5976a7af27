"""Ends a launch that an earlier process was stopping, or had no more use for, when it died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.engine.launches import Watch
from agent_orchestrator.engine.perform.work import Finished, Leftover

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

UNWANTED = Failure(kind=FailureKind.STOPPED, message="no longer wanted")


class LeftoverWork:
    """Keeps the unit occupied until the launch is gone; its outcome comes late and changes nothing."""

    def __init__(self, driver: Driver, effect: EffectId, finished: Finished) -> None:
        self.driver, self.effect = driver, Leftover(effect, unit_of(effect))
        self._finished = finished
        self._abandoned = False

    def start(self, *, halt: bool) -> None:
        """Watches and stops it."""
        launches = self.driver.engine.launches
        launches.watch(self.effect.id, Watch(grace_s=self.driver.engine.stop_grace_s), self._ended)
        launches.stop(self.effect.id, UNWANTED)

    def _ended(self, ending: Ending) -> None:
        if not self._abandoned:
            self._finished(
                AgentEnded(
                    effect=self.effect.id,
                    started_us=ending.started_us,
                    ended_us=ending.ended_us,
                    exit_code=ending.exit_code,
                    failure=UNWANTED,
                )
            )

    def stop(self) -> None:
        """It is being stopped already."""

    def abandon(self) -> None:
        """The next process will find it again."""
        self._abandoned = True
