"""Drives one run: takes all inputs that are ready, lets the system decide, makes it durable, then makes the world match.

Nothing is started, stopped or shown before the fact behind it is durable. If the append fails the state is thrown
away and folded again from the journal, and the inputs are taken again. Resume is a tick without inputs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agent_orchestrator.core.effects import KeptTree, RunAgent, Tree
from agent_orchestrator.core.events import CameLate, Event, StopReason, TakenUp, TreeKept, TreesReturned
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id, made_anew
from agent_orchestrator.core.inputs import DIRECTIVES, OUTCOMES, AgentEnded, Given, Posted
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.retry import shortage_pause_s
from agent_orchestrator.core.summary import Summary, waits_for_people
from agent_orchestrator.core.system import System
from agent_orchestrator.core.who import UNKNOWN
from agent_orchestrator.engine.budget.admission import Admission
from agent_orchestrator.engine.budget.run_budget import RunBudget
from agent_orchestrator.engine.journal import Folded, encode_events, fold, kept_tree
from agent_orchestrator.engine.overview import OverviewKeeper
from agent_orchestrator.engine.perform.shortage import caught, problem_of
from agent_orchestrator.engine.publisher import FRAMES_MAX, Frames
from agent_orchestrator.engine.slices import SLICE_S
from agent_orchestrator.engine.slots import Slots
from agent_orchestrator.engine.snapshots import SnapshotKeeper
from agent_orchestrator.errors import STORE_PASSES, OrcError
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.store.port import Append, RateWindow, StoredRun, UsageRow

if TYPE_CHECKING:
    from agent_orchestrator.engine.engine import Engine

T = TypeVar("T")

SUMMARY_EVERY_US = 500_000
"""The age that the summary in `orc list` may have while a run is busy; a change of status is written at once."""
SUMMARY_SPACING_US = 5_000
"""The summaries of all busy runs of a process are on average this far apart: with 1,000 runs each is written every 5 s."""

EVENTS_PER_TICK = 100
"""More follow in the next tick: admitting a thousand steps at once would stall everybody else on the loop."""


class Driver:
    """One run under one engine."""

    def __init__(self, engine: Engine, run: StoredRun, system: System) -> None:
        self.engine, self.run, self.system = engine, run, system
        self.notices: list[str] = []
        self._inputs: deque[Given] = deque()
        self._seen: set[str] = set()
        self._waiter: asyncio.Future[None] | None = None
        self._pausing: asyncio.Future[None] | None = None
        """Set while a store that refuses is left alone; a person does not wait for that."""
        self._leaving = False
        self._unfinished = False
        """True when the last tick stopped advancing only because it had become long."""
        self._is_new = True
        """Until the first tick is durable: what an earlier process reserved is not ours."""
        self.durable = True
        """False while the state is ahead of the journal: then nobody may show it."""
        self._error: BaseException | None = None
        self._shortages = 0
        """Refused appends in a row."""
        self.home, self.workdir = Path(run.context.home), Path(run.context.workdir)
        self.child_env = engine.world.child_env(run.context.pass_env)
        self._summary: Summary | None = None
        self._summary_due_us = self._questions = 0
        self._phase: Phase | None = None
        self._folded = fold(engine.store, system, run)
        self.state: Any = self._folded.state
        """The run's state; only evolve may change it. No property: a tick asks for it a dozen times."""
        self._facts: list[Event] = []
        """Facts of the engine's own about the run, for the next tick."""
        self.budget = RunBudget(self)
        self.admission = Admission(self)
        self.slots, self._snapshots = Slots(self), SnapshotKeeper(self)
        overviews = engine.world.overviews
        self._keeper = OverviewKeeper(self, overviews) if overviews is not None and system.overview is not None else None

    @property
    def seq(self) -> int:
        """The last row of the journal."""
        return self._folded.seq

    @property
    def folded(self) -> Folded:
        """The state with its place in the journal, to be looked at."""
        return self._folded

    def tree(self, tree: Tree | None) -> Path:
        """Return where something is done: in the run's own working tree, or in one that it asked for."""
        return self.workdir if tree is None else folder_of(self.home, self.run.context.run, tree)

    def open_tree(self, tree: Tree | None) -> None:
        """Makes sure of a tree that was asked for; slow the first time. Raises GitFailed."""
        if tree is not None:
            self.engine.world.open_tree(self.home, self.run.context.run, tree)

    def directory(self, effect: EffectId) -> Path:
        """The folder for what this run does about an effect that is no launch; one that it took over has another."""
        own = made_anew(effect, self.run.context.run, self.state.context.generation)
        return self.engine.launches.directory(own)

    def look_at(self, tree: Tree | None, unit: str = "") -> KeptTree | None:
        """Keeps a tree of the run as a unit left it, where it changed since the last look; slow."""
        keep = self.engine.world.keep_tree
        if keep is None:
            return None
        run = self.run.context.run
        scratch = self.engine.launches.directory(effect_id(run, UnitId("trees"), 0, 0, 0, "look")).with_name("trees")
        kept = self.engine.redactor.redact_tree(keep(self.tree(tree), scratch / (unit or "own"), run, tree))
        return kept if kept is not None and kept != self.state.doing.kept.get(kept.place) else None

    def keep_tree(self, effect: RunAgent, then: Callable[[KeptTree | OrcError | OSError | None], None]) -> None:
        """Keeps the tree that an agent leaves, in a thread; goes on with it, None when nothing is new, or with a shortage."""
        if (world := self.engine.world).keep_tree is None or not world.has_tree(self.tree(effect.tree)):
            then(None)
        else:
            self.engine.offload(None, lambda: caught(lambda: self.look_at(effect.tree, effect.unit)), then)

    def deliver(self, what: Given) -> None:
        """Gives the run an input; it is taken with the next tick."""
        self._inputs.append(what)
        if self._waiter is not None:
            _wake(self._waiter)
        if self._pausing is not None and isinstance(what, DIRECTIVES):
            _wake(self._pausing)

    def note(self, fact: Event) -> None:
        """Adds a fact of the engine's own; it is written down with the next tick, if it still holds then."""
        self._facts.append(fact)
        _wake(self._waiter)

    def look_again(self) -> None:
        """Ask once more whether waiting is wanted: a person may have thought better of it."""
        _wake(self._waiter)

    def worked_us(self) -> int:
        """Return how long something of the run was at work, up to now."""
        doing, now_us = self.state.doing, self.engine.clock.now_us()
        return int(doing.worked_us + (max(0, now_us - self._folded.at_us) if doing.at_work else 0))

    def take_directive(self, what: Posted) -> None:
        """Gives the run a directive from the inbox, once, however often the inbox is read before it is taken."""
        if what.id not in self._seen:
            self._seen.add(what.id)
            self.deliver(what if what.who is not None else msgspec.structs.replace(what, who=UNKNOWN))

    def leave(self) -> None:
        """Stop driving after the current tick; whatever runs goes on without us and is adopted later."""
        self._leaving = True
        _wake(self._waiter)
        _wake(self._pausing)

    def fail(self, error: BaseException) -> None:
        """Something broke in the engine: leave, and raise it from `drive`."""
        self._error = error
        self.leave()

    def let_go(self) -> None:
        """Nothing of this process looks after the run any more; whatever runs goes on."""
        self.slots.abandon()
        self.admission.close()
        if self._keeper is not None:
            self._keeper.close()

    def summary(self) -> Summary:
        """The run in one line, as of now."""
        return self._folded.summary()

    async def drive(self, stays: Callable[[Driver], bool]) -> Summary:
        """Ticks until the run ends, is paused and drained, or `stays` says that waiting is not wanted."""
        waits = bool(self._inputs) or bool(self.state.doing.finish.line) or self.state.doing.returning is not None
        if self.state.lifecycle.ended and not waits and not self.slots.leftovers():
            # Nothing is left to do but to print what a process that died at the very end may not have printed.
            await self.engine.publisher.flush(self)
            return self.summary()
        if self.seq <= 1:
            self.engine.publisher.offer(self, idle=True)  # A new run is shown as it begins, before anything happens in it.
        first = await self._take_up()
        while not await self._tick(first):
            if self._leaving and self._error is not None:
                raise self._error
            if self._leaving:
                return self.summary()
        engine, turn_s = self.engine, self.engine.clock.monotonic_s()
        while not self._leaving and ((ready := self._ready()) or self._going(stays)):
            if not ready:
                self._waiter = engine.loop.create_future()
                await self._waiter
                self._waiter, turn_s = None, engine.clock.monotonic_s()
            elif engine.is_alone and engine.clock.monotonic_s() - turn_s >= SLICE_S:
                # A run that is never at a loss must not keep the loop for itself; beside others it waits for each commit.
                await asyncio.sleep(0)
                turn_s = engine.clock.monotonic_s()
            await self._tick([])
        if self._error is None:
            await self.engine.publisher.flush(self)
        if self._error is not None:
            raise self._error
        newest = self._summary if not self.state.doing.at_work else None  # While nothing works, every tick makes it anew.
        return newest or self.summary()

    async def _take_up(self) -> list[Event]:
        """The first facts of this process: that it is here, the trees of a point brought back, and the tree as it was found."""
        engine, lost = self.engine, self.engine.world.lost
        facts: list[Event] = [TakenUp(boot=engine.boot, host=engine.host, pid=engine.pid, version=engine.version, lost=lost)]
        if (going := self.state.doing.returning) is not None:
            facts.append(TreesReturned(kept=await self._slowly(lambda: self.engine.world.return_trees(going))))
        if self.engine.world.keep_tree is not None and not self.state.lifecycle.ended:
            # Whoever takes a run up may want to stop it: that does not wait for room on the disk.
            kept = problem_of(await self._slowly(lambda: caught(lambda: self.look_at(None))))
            facts += [TreeKept(kept=kept)] if kept is not None else []
        return facts

    async def _slowly(self, work: Callable[[], T]) -> T:
        return await self.engine.threads.submit(work) if self.engine.world.threads else work()

    def _ready(self) -> bool:
        """Say whether the next tick has something to do."""
        return bool(self._inputs or self._unfinished or self._facts)

    def _going(self, stays: Callable[[Driver], bool]) -> bool:
        return self.slots.busy > 0 or (self.state.lifecycle.running and stays(self))

    async def _tick(self, facts: list[Event]) -> bool:
        """One turn; False when it could not be written and nothing happened."""
        noted, events, state, folded = self._facts, [*facts], self.state, self._folded
        if noted:
            self._facts = []
            events += [fact for fact in noted if self.admission.holds_true(fact)]
        worked = folded.works(events)
        taken: list[Given] = []
        now_us = max(self.engine.clock.now_us(), folded.at_us)
        frames = Frames(self.engine.publisher, self)
        if events:
            folded.apply(events, now_us)
        while self._inputs and frames.taken < FRAMES_MAX:
            taken.append(self._inputs.popleft())
            events += self._decide(taken[-1], now_us, frames)
        advance = self.system.advance
        self._unfinished = False
        while more := advance(state, now_us):
            folded.apply(more, now_us, frames.look)
            events += more
            if len(events) >= EVENTS_PER_TICK or frames.taken >= FRAMES_MAX:
                self._unfinished = True
                break
        if events or taken:
            self.durable = False
            try:
                if (waits := self._append(self._part(events, taken, now_us, frames))) is not None:
                    await waits
            except OrcError as error:
                frames.discard()
                if not isinstance(error, STORE_PASSES):
                    raise
                self._facts[:0] = noted
                await self._start_over(taken, error)
                return False
            self.durable, self._is_new = True, False
            if frames.drafts:
                frames.place()  # Before anything starts: an agent may look, and finds itself at work.
            self._shortages = 0
            if worked:
                state.doing.worked_us += now_us - folded.at_us
            folded.seq += 1 if events else 0
            folded.at_us = now_us
            for what in taken:
                if isinstance(what, OUTCOMES):
                    if isinstance(what, AgentEnded):
                        self.admission.settle(what)
                    self.slots.release(what.effect)
            self.engine.observe(self, events, now_us)
            if self._keeper is not None:
                self._keeper.look()
        self.slots.match(state.doing.take_changes(), halting=state.lifecycle.halting)
        self.admission.end_tick()
        self.engine.publisher.offer(self, idle=not self.slots.busy)
        if folded.seq >= self._snapshots.due:
            self._snapshots.take()
        self._assert_alive()
        return True

    def _append(self, part: Append) -> asyncio.Future[None] | None:
        """Makes it durable at once, or with whatever other runs append in this turn of the loop: then returns what to wait for.

        While a print-out of the run is under way, its files come first: this turn's own must not be overwritten with older ones.
        """
        engine = self.engine
        if engine.is_alone and not engine.publisher.is_busy(self):
            return engine.committer.append_now(part)
        return engine.committer.append(part)

    def _decide(self, what: Given, now_us: int, frames: Frames) -> Sequence[Event]:
        state = self.state
        if isinstance(what, OUTCOMES) and not state.doing.wants(what.effect):
            failure = getattr(what, "failure", None)
            events: Sequence[Event] = [*kept_tree(what), CameLate(effect=what.effect, failure=failure.kind if failure else None)]
        else:
            events = self._folded.decide(what, now_us)
        self._folded.apply(events, now_us, frames.look)
        return events

    def _part(self, events: list[Event], taken: list[Given], now_us: int, frames: Frames) -> Append:
        lifecycle, admission = self.state.lifecycle, self.admission
        directives: list[str] = []
        usage: list[UsageRow] = []
        windows: list[RateWindow] = []
        over: list[EffectId] = []
        for what in taken:
            if isinstance(what, AgentEnded):
                effect = self.slots.agent_effect(what.effect)
                if what.usage is not None or (effect is not None and self.budget.limits_time(effect)):
                    usage.append(admission.usage_of(what, effect))
                if what.failure is not None:
                    windows += admission.refusals(what.failure, effect)
                if admission.accounts_for(what.effect):
                    over.append(what.effect)
            elif isinstance(what, DIRECTIVES):
                directives.append(what.id)
        return Append(
            run=self.run.id,
            expected_seq=self._folded.seq,
            epoch=self.engine.epoch,
            at_us=now_us,
            body=encode_events(events) if events else None,
            summary=self._news(now_us),
            taken=tuple(directives),
            usage=tuple(usage),
            windows=tuple(windows),
            over=tuple(over),
            starting=admission.plan_starts() if not self._is_new else (),
            release_all=(lifecycle.ended or self._is_new) and self.state.doing.budget.is_set,
            printed=frames.printed if frames.drafts else (),
        )

    def _news(self, now_us: int) -> Summary | None:
        """The summary, when the list of runs should have it: a busy run's now and then, but a question at once."""
        doing, phase = self.state.doing, self.state.lifecycle.phase
        asked, self._questions = self._questions, doing.asking
        if now_us < self._summary_due_us and doing.at_work and phase is self._phase and asked == self._questions:
            return None
        if self._keeper is None:
            self._summary_due_us = now_us + max(SUMMARY_EVERY_US, len(self.engine.drivers) * SUMMARY_SPACING_US)
        self._phase = phase
        summary, before = self.summary(), self._summary
        self._summary = summary
        return summary if summary != before else None

    async def _start_over(self, taken: list[Given], error: OrcError) -> None:
        """Nothing was written, so nothing happened: the journal's state again, the inputs again, after a pause."""
        while True:
            pause_s = shortage_pause_s(self._shortages)
            self._shortages += 1
            self.engine.notify(self, f"{error} Trying again in {pause_s:g} s.")
            self._pausing = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._pausing], timeout=pause_s)
            self._pausing = None
            if self._leaving:
                return
            try:
                self._folded = fold(self.engine.store, self.system, self.run)
                self.state = self._folded.state
                break
            except STORE_PASSES as again:
                error = again
        self.durable = True
        self.slots.inherit()
        self._inputs.extendleft(reversed(taken))
        self._summary = None

    def _assert_alive(self) -> None:
        if self.slots.busy or self._inputs or self._unfinished:
            return
        hung = self.state.lifecycle.running and not len(self.state.doing)
        assert not hung, f"run {self.run.id} is running but nothing is going on and nothing follows"

    def is_parked(self) -> bool:
        """Say whether nothing can go on before a rate limit is over."""
        return bool(self.state.doing.holds) and self.summary().stop is StopReason.RATE_LIMITED

    def waits_only_for_people(self) -> bool:
        """Say whether nothing but a person can move the run: see `core/summary`."""
        return waits_for_people(self.state.doing)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
