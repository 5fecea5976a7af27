"""Runs an agent as a launch and turns its end into an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from agent_orchestrator.agents.adapter import Agent, Announcing, Ending, Metered, Reading, Sleeping, Verdict
from agent_orchestrator.agents.options import silence_s
from agent_orchestrator.agents.output import read_tails, readable
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import KeptTree, RunAgent
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.inputs import AgentEnded, Outcome
from agent_orchestrator.core.limits import METER_LOOK_S, TAIL_CHARS
from agent_orchestrator.engine.budget.usage import metered
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.perform.launch import Launched
from agent_orchestrator.engine.perform.prepare import make_task, write_task
from agent_orchestrator.engine.perform.shortage import problem_of
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


class AgentWork(Launched):
    """One launch of one agent."""

    def __init__(
        self,
        driver: Driver,
        effect: RunAgent,
        finished: Finished,
        agent: Agent,
        *,
        inherited: bool,
        same_boot: bool,
    ) -> None:
        super().__init__(driver, effect, finished, inherited=inherited, same_boot=same_boot)
        self.effect, self._agent = effect, agent
        # By a name, because checking a protocol at run time takes as long as creating a file.
        self._announcing = cast(Announcing, agent) if hasattr(agent, "watch_result") else None
        self._metered = cast(Metered, agent) if hasattr(agent, "meter") else None
        self._sleeping = cast(Sleeping, agent) if hasattr(agent, "watch_sleep") else None
        self._task = make_task(driver, effect, self.directory, agent)
        self._cumulative = False
        self._kept: tuple[Path, ...] = ()
        self._meter: Callable[[], Reading] | None = None
        self._asleep: Callable[[], Failure | None] | None = None
        self._seen: tuple[Reading, Budget] | None = None
        """The consumption that was last judged, and the budget it was judged by."""

    def order(self) -> Order:
        """Writes prompt and feedback and asks the adapter how to start."""
        write_task(self._task, self._agent)
        plan = self._agent.plan(self._task)
        self._kept = plan.keeps
        return Order(
            effect=self.effect.id,
            argv=plan.argv,
            env={**self.engine.world.trace(self.effect.id), **plan.env},
            cwd=self._task.workdir,
            stdin=plan.stdin,
            terminal=self.effect.terminal,
        )

    def open_paths(self) -> tuple[Path, ...]:
        """The artifacts, and what its client keeps of its own, made here because behind the wall it could not make them."""
        for folder in self._kept:
            if not folder.suffix:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return (self._task.artifacts_dir, *self._kept)

    def limits(self) -> Watch:
        """The step's limits."""
        effect = self.effect
        return Watch(
            timeout_s=effect.timeout_s,
            idle_timeout_s=silence_s(effect.idle_timeout_s, self._agent),
            budget_s=self.driver.budget.launch_left_s(effect),
            output_limit_bytes=effect.output_limit_bytes,
            grace_s=self.engine.stop_grace_s,
            finished=self._announcing.watch_result(self._task, self.directory / "out") if self._announcing is not None else None,
            result_grace_s=self.engine.result_grace_s,
            grew=self._look if self._metered is not None or self._sleeping is not None else None,
            look_s=self._look_s if self._metered is not None else None,
        )

    def _look_s(self) -> float:
        """Each call has to be seen in time, as soon as what it consumes is limited."""
        return METER_LOOK_S if self.driver.budget.covers(self.effect) else math.inf

    def _look(self) -> Failure | None:
        """Return why it has to be stopped, by what it has written up to now."""
        if self._sleeping is not None and self._asleep is None:
            self._asleep = self._sleeping.watch_sleep(self._task, self.directory / "err")
        sleeps = self._asleep() if self._asleep is not None else None
        return sleeps or self._spends()

    def _spends(self) -> Failure | None:
        """Return what it has consumed by now, where that is limited: limits may be set while it works."""
        if not self.driver.budget.covers(self.effect) or self._metered is None:
            return None
        if self._meter is None:
            self._meter = self._metered.meter(self._task, self.directory / "out", self.directory / "err")
        seen = (self._meter(), self.driver.state.doing.budget)
        if not seen[0].calls or seen == self._seen:
            return None  # What it wrote was no call: a stream says more of other things, and asking costs a commit.
        self._seen = seen
        return self.driver.admission.meter(self.effect, seen[0])

    def stop_for(self, failure: Failure) -> None:
        """Stops the program for a reason of the engine's own; nothing, when it has not started or is being stopped."""
        if self._watching and not self._unwanted:
            self.engine.launches.stop(self.effect.id, failure)

    def read_when_judging(self, ending: Ending) -> tuple[Path, ...]:
        """The report is read too, and may be as large as an agent likes."""
        files = (ending.out, ending.err, self._task.report)
        asked = self._announcing.report_file(self._task) if self._announcing is not None else None
        return files if asked is None or asked in files else (*files, asked)

    def judge(self, ending: Ending) -> AgentEnded:
        """Secrets are taken out of the stored output first, so that nothing quoted from it carries one."""
        redactor = self.engine.redactor
        self.redact(*self.read_when_judging(ending))
        verdict = self._agent.judge(self._task, ending)
        failure = verdict.failure
        if failure is not None:
            failure = msgspec.structs.replace(failure, message=redactor.redact_text(failure.message))
        self._cumulative = verdict.cumulative
        return AgentEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=failure,
            report=verdict.report,
            usage=verdict.usage,
            session=verdict.session,
            tail=redactor.redact_text(self._tail(ending, verdict)),
            warnings=(*ending.warnings, *verdict.warnings),
            denials=tuple(msgspec.structs.replace(one, asked=redactor.redact_text(one.asked)) for one in verdict.denials),
        )

    def _tail(self, ending: Ending, verdict: Verdict) -> str:
        """The end of what it wrote; of one whose work is good and who says so, its words alone."""
        if verdict.said and verdict.failure is None:
            return readable(verdict.said)[-TAIL_CHARS:]
        return read_tails(ending, verdict.said, getattr(self._agent, "chatter", None))

    def unjudged(self, ending: Ending, failure: Failure) -> AgentEnded:
        """Never started, or its end cannot be understood."""
        return AgentEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=failure,
        )

    def deliver(self, outcome: Outcome) -> None:
        """Keeps the tree first: a run can go back to every point at which an agent ended."""
        assert isinstance(outcome, AgentEnded), "an agent ends as an agent does"
        self.driver.keep_tree(self.effect, lambda kept: self._kept_tree(outcome, kept))

    def _kept_tree(self, outcome: AgentEnded, kept: KeptTree | OrcError | OSError | None) -> None:
        if self._abandoned:
            return
        if isinstance(kept, Exception) and not self._unwanted:
            self._shortage.later(kept, lambda: self._keep_again(outcome, kept))
        else:
            self._deliver(msgspec.structs.replace(outcome, kept=problem_of(kept)))

    def _keep_again(self, outcome: AgentEnded, problem: OrcError | OSError) -> None:
        """Tries again, unless somebody stops the run: that waits for no room, and needs for its facts what was kept back."""
        if self._abandoned:
            return
        if self.driver.state.lifecycle.running:
            self.deliver(outcome)
        else:
            self._deliver(msgspec.structs.replace(outcome, kept=problem_of(problem)))

    def _deliver(self, outcome: AgentEnded) -> None:
        """Counts what was consumed, on the loop because the ledger is read, and keeps a copy of the report for people."""
        copied = self._task.copies_session
        outcome = metered(outcome, self.effect, self.engine.store, cumulative=self._cumulative, copied=copied)
        self.engine.keep_report(self.driver, self.effect, outcome)
        super().deliver(outcome)
