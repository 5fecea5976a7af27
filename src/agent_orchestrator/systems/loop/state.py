"""A loop in memory. Only `evolve` changes any of this.

`due` is what the loop does next as soon as it may: save, before, agent, check, confirm, judge, next, complete,
criterion, tests, done. It does one thing at a time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.inputs import FileChange
from agent_orchestrator.core.lifecycle import Lifecycle, Phase
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.unit import UnitNeeds, UnitRecord, UnitView
from agent_orchestrator.core.units import US, iso
from agent_orchestrator.systems.loop.spec import Carried, LoopSpec, Tried
from agent_orchestrator.systems.loop.transitions import LoopStatus

UNIT = "loop"
CHECKS_KEPT = 1_000
LEARNINGS_KEPT = 20
"""The most that is kept in memory, newest last; the journal has all."""
TRIED_CARRIED = 20
"""The number of attempts that a successor is told of."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `completion_checks`."""

    iteration: int
    timestamp: str
    passed: bool
    output: str


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """One tree under a ref."""

    commit: str
    tree: str
    files_changed: int
    lines_added: int
    lines_removed: int


class Iteration(msgspec.Struct, kw_only=True):
    """One iteration, for analytics, best and stuck."""

    number: int
    started_us: int
    ended_us: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    reported_score: float | None = None
    summary: str = ""
    done: bool = False
    agent_error: str = ""
    saved: Saved | None = None
    tests: int | None = None
    tests_passed: int | None = None
    passed: bool | None = None
    score: float | None = None
    delta: float | None = None
    progress: bool = False
    failed: bool = False
    error: str = ""
    signature: str = ""
    blocked: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    """The words that stood first in its prompt: told again when its launch was interrupted."""


class LoopState:
    """One loop."""

    def __init__(self, spec: LoopSpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.lifecycle, self.doing = Lifecycle(), Doing()
        if spec.budget_usd is not None:
            self.doing.budget = Budget(run=Amounts(cost_usd=spec.budget_usd))
        carried = spec.carried
        self.iteration = carried.iteration if carried else 0
        """Iterations completed, those of predecessors included."""
        self.first = self.iteration
        self.due: str | None = "save"
        self.purpose = ""
        """Of the command that runs, or ran last."""
        self.record = UnitRecord()
        self.pausing: str | None = None
        """Why the loop pauses when this iteration ends."""
        self.completing = False
        self.early = False
        """The check passed before the first iteration."""
        self.conclusion: tuple[StopReason, str] | None = None
        self.crashed = False
        self.orphaned = False
        """Whoever started what runs now is gone."""
        self.recovered_by: str | None = None
        self.asking = ""
        """What a person is asked about, or was last: criterion, weakened, stuck."""
        self.confirming = False
        self.verdict: bool | None = None
        """Whether the iteration at work met the criterion, as far as is known."""
        self.accepted: bool | None = None
        """What a person said about weakened tests or a stuck loop."""
        self.then = "next"
        """What follows the wait."""
        self.cooling = False
        """The last agent failed: the next iteration waits a moment."""
        self.failing = 0
        """Failed agents in a row."""
        self.current: Iteration | None = None
        self.iterations: list[Iteration] = []
        self.checks: list[Check] = []
        self.tried: list[Tried] = list(carried.tried) if carried else []
        self.learnings: list[str] = list(carried.learnings) if carried else []
        self.check_output = carried.check_output if carried else ""
        self.check_exit: int | None = None
        self.tests_most: int | None = carried.tests_most if carried else None
        self._begin_knowing(spec)
        self._begin_counting(context)

    def _begin_knowing(self, spec: LoopSpec) -> None:
        """Nothing is known of the tree, and nothing is wrong."""
        self.start: Saved | None = None
        self.last: Saved | None = None
        self.untracked = "" if spec.git else "the working tree is not in a git repository"
        """Why there are no diffs, when there are none."""
        self.changed: tuple[FileChange, ...] = ()
        self.diff = ""
        self.steering: list[str] = list(spec.carried.steering) if spec.carried else []
        self.notices: tuple[str, ...] = ()
        """What is wrong and the next prompt says: stuck, weakened tests, a confirmer's no."""
        self.strikes = 0
        self.evidence: tuple[str, ...] = ()
        self.window = 0
        """Iterations since the last strike: the same error is counted anew after each."""

    def _begin_counting(self, context: Context) -> None:
        """Nothing was done, nothing was spent, nobody drives."""
        self.best: Iteration | None = None
        self.plateau: int | None = None
        self.low_deltas = 0
        self.successes = 0
        self.failures = 0
        self.tokens: int | None = None
        self.cost_usd: float | None = None
        self.worked_us = 0
        self.paused_us = 0
        self.paused_at_us: int | None = None
        self.started_us = context.created_us
        self.updated_us = context.created_us
        self.ended_us: int | None = None
        self.over_us: int | None = None
        """When an imported loop ended, by its file."""
        self.gap_us = 0
        """Time between the start and the import of an imported loop that its file does not count."""
        self.made = 0
        """Iterations before the loop was imported."""
        self.named_checkpoint: str | None = None
        """The newest checkpoint of an imported loop, by its file."""
        self.told_error: dict[str, Any] = {}
        """The `error_context` of an imported loop, by its file."""
        self.imported_from = ""
        self.left_out: tuple[str, ...] = ()
        self.error: tuple[str, int] | None = None
        self.pid: int | None = None
        self.driven = False
        self.checkpoints: dict[int, bytes] = {}
        self.newest_checkpoint: int | None = None

    @property
    def status(self) -> LoopStatus:
        """The loop's status in the seed's words."""
        life = self.lifecycle
        if life.ended:
            if self.crashed:
                return LoopStatus.CRASHED
            ends = {StopReason.COMPLETED: LoopStatus.COMPLETED, StopReason.ABORTED: LoopStatus.ABORTED}
            return ends.get(life.stop or StopReason.FAILED, LoopStatus.FAILED)
        if self.completing:
            return LoopStatus.COMPLETING
        if life.phase is Phase.PAUSED and not self.doing.at_work:
            return LoopStatus.PAUSED
        return LoopStatus.PAUSED if life.running and isinstance(self.doing.of(UNIT), AskHuman) else LoopStatus.RUNNING

    @property
    def stage(self) -> LoopStatus:
        """The status that directives are judged by: a loop that waits for a person can be paused."""
        if self.lifecycle.phase is Phase.PAUSED:
            return LoopStatus.PAUSED
        return LoopStatus.RUNNING if self.lifecycle.running and not self.completing else self.status

    def name_effect(self, kind: str, iteration: int | None = None) -> EffectId:
        """The id of the next effect."""
        number = self.number if iteration is None else iteration
        return effect_id(self.context.run, UnitId(UNIT), number, 1, self.record.launches + 1, kind, self.context.generation)

    @property
    def number(self) -> int:
        """The iteration at work, or the last one; 0 before the first."""
        return self.current.number if self.current is not None else self.iteration

    def carry_over(self) -> Carried:
        """Give what a successor takes over."""
        return Carried(
            loop=self.context.run,
            iteration=self.iteration,
            tried=tuple(self.tried[-TRIED_CARRIED:]),
            learnings=tuple(self.learnings),
            check_output=self.check_output,
            tests_most=self.tests_most,
            steering=tuple(self.steering),
        )

    def elapsed_us(self, now_us: int) -> int:
        """Time since the start, pauses and times in which it was held left out; a clock that was set back takes none away."""
        return self.worked_until_us(max(now_us, self.updated_us))

    def worked_until_us(self, moment_us: int) -> int:
        """Time between the start and a moment of its past, pauses and times in which it was held left out."""
        paused_us = moment_us - self.paused_at_us if self.paused_at_us is not None else 0
        return moment_us - self.started_us - self.paused_us - paused_us

    def time_left_s(self, now_us: int) -> float | None:
        """Until the loop's own time-out."""
        if self.spec.timeout_minutes is None:
            return None
        return self.spec.timeout_minutes * 60 - self.elapsed_us(now_us) / US

    @property
    def steps(self) -> dict[str, Any]:
        """The one unit, as commands for all systems show it."""
        from_us, until_us = self.started_us, self.ended_us
        error = self.error[0] if self.error else (self.lifecycle.detail or None)
        times = [None if at_us is None else iso(at_us) for at_us in (from_us, until_us)]
        return {UNIT: UnitView(self.status, 1, self.iteration, times[0], times[1], error)}

    @property
    def specs(self) -> dict[str, Any]:
        """The one unit's specification, as far as commands for all systems look at it."""
        return {UNIT: UnitNeeds()}
