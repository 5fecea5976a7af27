"""Plays an in-process agent: a delay and an action. It dies with this process, so what was inherited is lost."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.agents.adapter import AgentTask, InProcessAgent
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.engine.perform.prepare import make_task
from agent_orchestrator.engine.perform.shortage import ShortageWait, caught, problem_of
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError, is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

LOST = Failure(kind=FailureKind.LOST, message="The rehearsed agent ended with the process that played it")
STOPPED = Failure(kind=FailureKind.STOPPED, message="stopped")
NOWHERE = Path()
"""It has no launch directory; to make a path takes as long as to encode the events of a tick."""


class PlayedWork:
    """One part played inside the engine."""

    def __init__(self, driver: Driver, effect: RunAgent, finished: Finished, agent: InProcessAgent, *, inherited: bool) -> None:
        self.driver, self.effect = driver, effect
        self._finished, self._agent, self._inherited = finished, agent, inherited
        self._started_us = driver.engine.clock.now_us()
        self._timer: asyncio.Handle | None = None
        self._task: AgentTask | None = None
        self._over = False
        self._shortage: ShortageWait | None = None
        """Made when it is needed: a part that is played in the run's own tree opens nothing."""

    def start(self, *, halt: bool) -> None:
        """Schedules the action; a time limit shorter than the part ends it early."""
        loop = self.driver.engine.loop
        if self._inherited or halt:
            self._timer = loop.call_soon(self._end_with, STOPPED if halt else LOST)
        elif self.effect.tree is None:
            self._play()
        else:
            self._shortage = ShortageWait(self.driver, self.effect)
            self.driver.engine.offload(None, self._open_tree, self._opened)

    def _open_tree(self) -> OrcError | OSError | None:
        return caught(lambda: self.driver.open_tree(self.effect.tree))

    def _opened(self, problem: OrcError | OSError | None) -> None:
        assert self._shortage is not None
        if self._over:
            return
        if problem is not None and is_shortage(problem):
            self._shortage.later(problem, lambda: self.driver.engine.offload(None, self._open_tree, self._opened), starts=True)
            return
        self._shortage.end()
        if problem is not None:
            self._end_with(Failure(kind=FailureKind.LAUNCH, message=str(problem)))
        else:
            self._play()

    def _play(self) -> None:
        loop = self.driver.engine.loop
        self._task = make_task(self.driver, self.effect, NOWHERE, self._agent)
        delay_s = self._agent.delay_s(self._task)
        if delay_s == 0:
            self._act()
            return
        limit_s = self.effect.timeout_s if self.effect.timeout_s is not None else math.inf
        budget_s = self.driver.budget.launch_left_s(self.effect)
        if budget_s is not None and budget_s < min(delay_s, limit_s):
            over = Failure(kind=FailureKind.BUDGET, message=f"Stopped: it ran out of time after {budget_s:g} s")
            self._timer = loop.call_later(budget_s, self._end_with, over)
        elif delay_s <= limit_s and delay_s != math.inf:
            self._timer = loop.call_later(delay_s, self._act)
        elif limit_s != math.inf:
            timeout = Failure(kind=FailureKind.TIMEOUT, message=f"Timed out after {limit_s:g} s")
            self._timer = loop.call_later(limit_s, self._end_with, timeout)

    def _act(self) -> None:
        assert self._task is not None
        verdict = self._agent.act(self._task)
        self._end(
            AgentEnded(
                effect=self.effect.id,
                started_us=self._started_us,
                ended_us=self.driver.engine.clock.now_us(),
                exit_code=0 if verdict.failure is None else None,
                failure=verdict.failure,
                report=verdict.report,
                usage=verdict.usage,
                warnings=verdict.warnings,
            )
        )

    def _end_with(self, failure: Failure) -> None:
        now_us = self.driver.engine.clock.now_us()
        self._end(AgentEnded(effect=self.effect.id, started_us=self._started_us, ended_us=now_us, failure=failure))

    def _end(self, outcome: AgentEnded) -> None:
        """Keeps the tree first, where the part may have changed it."""
        if self._task is not None and outcome.exit_code is not None and self._agent.touches(self._task):
            self.driver.keep_tree(self.effect, lambda kept: self._tell(msgspec.structs.replace(outcome, kept=problem_of(kept))))
        else:
            self._tell(outcome)

    def _tell(self, outcome: AgentEnded) -> None:
        if self.effect.report_copy is not None and outcome.report is not None:
            content = msgspec.json.format(msgspec.json.encode(outcome.report)) + b"\n"
            self.driver.engine.publisher.copy_later(self.driver, self.effect.report_copy, content)
        self._finished(outcome)

    def stop_for(self, failure: Failure) -> None:
        """Ends the part at once, for a reason of the engine's own."""
        self.abandon()
        self._timer = self.driver.engine.loop.call_soon(self._end_with, failure)

    def stop(self) -> None:
        """Ends the part at once."""
        self.abandon()
        self._timer = self.driver.engine.loop.call_soon(self._end_with, STOPPED)

    def abandon(self) -> None:
        """Forgets the timer."""
        self._over = True
        if self._shortage is not None:
            self._shortage.cancel()
        if self._timer is not None:
            self._timer.cancel()
