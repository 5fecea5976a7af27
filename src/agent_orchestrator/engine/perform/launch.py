"""A work that is an external program: started once, adopted or collected after a crash, stopped when no longer wanted.

A shortage of the machine is not an attempt: the start is tried again after a pause. What never started because a
stop came first ends as stopped, without a process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.bounded import read_bounded, store_of
from agent_orchestrator.core.effects import Merge, RunAgent, RunCheck
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Outcome
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.engine.launches import CannotStart, Order, Standing, Watch
from agent_orchestrator.engine.perform.shortage import ShortageWait, caught
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.engine.walls.places import Surroundings
from agent_orchestrator.errors import OrcError, Shortage, is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

STOPPED = Failure(kind=FailureKind.STOPPED, message="stopped")


class Launched:
    """Common to agents, checks and merges."""

    def __init__(
        self,
        driver: Driver,
        effect: RunAgent | RunCheck | Merge,
        finished: Finished,
        *,
        inherited: bool,
        same_boot: bool,
    ) -> None:
        self.driver, self.engine = driver, driver.engine
        self._effect, self._finished = effect, finished
        self._tree = None if isinstance(effect, Merge) else effect.tree
        self._inherited, self._same_boot = inherited, same_boot
        self._watching = False
        self._unwanted = False
        self._abandoned = False
        self._shortage = ShortageWait(driver, effect)
        self.directory = self.engine.launches.directory(effect.id)

    def start(self, *, halt: bool) -> None:
        """Starts a new launch, or takes over what an earlier process left."""
        self._unwanted = halt
        standing = Standing.NEW
        if not self._inherited:
            self._claim()
        else:
            standing = self.engine.launches.standing(self._effect.id, same_boot=self._same_boot)
        if standing is Standing.NEW:
            self.engine.slices.now(self._prepare)
            return
        self._watch()
        if halt:
            self.engine.launches.stop(self._effect.id, STOPPED)

    def _claim(self) -> None:
        with contextlib.suppress(OSError):  # what cannot be moved is met again by the start, which says why
            if (planted := self.engine.launches.claim(self._effect.id)) is not None:
                why = "had its folder before it was started: somebody made it, and what lies in it counts for nothing"
                self.engine.notify(self.driver, f"The launch {self._effect.id} {why}; it is kept as {planted}.")

    def stop(self) -> None:
        """Stops the program, or keeps it from starting."""
        if self._unwanted:
            return
        self._unwanted = True
        if self._watching:
            self.engine.launches.stop(self._effect.id, STOPPED)
        elif self._shortage.cancel():
            # Waiting for the machine to recover: nothing has started, so it can end at once.
            self.engine.slices.add(self._spawn)

    def abandon(self) -> None:
        """The program lives on."""
        self._abandoned = True
        self._shortage.cancel()

    def _prepare(self) -> None:
        if self._unwanted or not self.prepares():
            self._spawn()
        else:
            self.engine.offload(None, lambda: caught(self.prepare), self._go_on)

    def _go_on(self, problem: OrcError | OSError | None) -> None:
        if problem is None or self._unwanted or self._abandoned:
            self.engine.slices.add(self._spawn)
        elif is_shortage(problem):
            self._shortage.later(problem, self._prepare, starts=True)
        else:
            self.engine.launches.void(self._effect.id)
            self._end_unstarted(Failure(kind=FailureKind.LAUNCH, message=str(problem)))

    def prepares(self) -> bool:
        """Say whether anything slow has to happen before the program may start."""
        return self._tree is not None

    def prepare(self) -> None:
        """Return what has to happen before, in a thread."""
        self.driver.open_tree(self._tree)

    def _spawn(self) -> None:
        if self._abandoned:
            return
        if self._unwanted:
            self.engine.launches.void(self._effect.id)
            self._end_unstarted(STOPPED)
            return
        try:
            order = self._behind_wall(self.order())
            if not self.engine.may_act():
                raise Shortage(detail="this process has no lease on the run, which another host may have taken up")
            self.engine.launches.start(order)
        except CannotStart as error:
            self._end_unstarted(Failure(kind=FailureKind.LAUNCH, message=str(error)))
        except (OrcError, OSError) as error:
            if is_shortage(error):
                self._shortage.later(error, self._spawn, starts=True)
            else:
                said = str(error) if isinstance(error, OrcError) else f"It cannot be started: {error}"
                self._end_unstarted(Failure(kind=FailureKind.LAUNCH, message=said))
        else:
            self._shortage.end()
            self._watch()

    def is_enclosed(self) -> bool:
        """Say whether the wall of the run stands around this program; one of orc's own that speaks to the world has none."""
        return True

    def open_paths(self) -> tuple[Path, ...]:
        """Paths that it may write to beside the tree and its own folder."""
        return ()

    def _behind_wall(self, order: Order) -> Order:
        """Raises CannotStart where the wall cannot stand: without it nothing is started."""
        context = self.driver.run.context
        if context.sandbox is None or not self.is_enclosed():
            return order
        around = Surroundings(
            repo=self.driver.home,
            store=store_of(self.directory),
            tree=order.cwd,
            launch=self.directory,
            env=order.env,
            more=self.open_paths(),
        )
        online = context.sandbox.network == "on" or (context.sandbox.network == "agents" and isinstance(self._effect, RunAgent))
        from agent_orchestrator.engine.walls.enclosure import enclose

        return enclose(order, context.sandbox, around, online=online, passed=context.pass_env)

    def _watch(self) -> None:
        self._watching = True
        self.engine.launches.watch(self._effect.id, self.limits(), self._ended)

    def _ended(self, ending: Ending) -> None:
        if self._abandoned:
            return
        if not ending.unstarted:
            self._collect(ending)  # Ends that come at once are handed over in slices already.
            return
        self._watching = False
        if self._unwanted:
            self.engine.slices.add(self._spawn)
        else:
            self._shortage.later(ending.unstarted, self._spawn, starts=True)

    def _collect(self, ending: Ending) -> None:
        """Judges in place when there is little to read, in a thread when there is much."""

        def judged() -> Outcome | Exception:
            try:
                return self.judge(ending)
            except Exception as error:
                if is_shortage(error):
                    return error
                why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else repr(error)
                failure = Failure(kind=FailureKind.REPORT_INVALID, message=f"The end could not be judged: {why}")
                return self.unjudged(ending, ending.cause or failure)

        def settle(outcome: Outcome | Exception) -> None:
            if self._abandoned:
                return
            if isinstance(outcome, Exception):
                # A full disk is not the agent's fault: its outcome waits in its directory.
                self._shortage.later(outcome, lambda: self._collect(ending))
            else:
                self.deliver(outcome)

        self.engine.offload(self.weight(ending), judged, settle)

    def read_own(self, name: str) -> bytes:
        """Reads a file that this launch's start put into its folder, through no link. Raises OSError."""
        file = self.directory / name
        return read_bounded(file, REPORT_LIMIT_BYTES, root=store_of(self.directory))

    def redact(self, *files: Path) -> None:
        """Takes secrets out of what the program left, before anything is quoted from it."""
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                self.engine.redactor.redact_file(file)

    def deliver(self, outcome: Outcome) -> None:
        """Hands the outcome over, unless this process is leaving."""
        if not self._abandoned:
            self._finished(outcome)

    def _end_unstarted(self, failure: Failure) -> None:
        now_us = self.engine.clock.now_us()
        ending = Ending(
            exit_code=None,
            cause=failure,
            started_us=now_us,
            ended_us=now_us,
            out=self.directory / "out",
            err=self.directory / "err",
        )
        self.deliver(self.unjudged(ending, failure))

    def weight(self, ending: Ending) -> int | None:
        """Return how many bytes judging will read; None when it may take long for other reasons."""
        total = 0
        for file in self.read_when_judging(ending):
            try:
                total += file.stat().st_size
            except OSError:
                continue
        return total

    def read_when_judging(self, ending: Ending) -> tuple[Path, ...]:
        """The files whose size decides whether judging goes into a thread."""
        return (ending.out, ending.err)

    def order(self) -> Order:
        """Return how to start; raises CannotStart."""
        raise AssertionError("each launched work orders for itself")

    def limits(self) -> Watch:
        """The limits it runs under."""
        raise AssertionError("each launched work has its limits")

    def judge(self, ending: Ending) -> Outcome:
        """Return what its end means; called in a thread when there is much to read."""
        raise AssertionError("each launched work judges for itself")

    def unjudged(self, ending: Ending, failure: Failure) -> Outcome:
        """The outcome of a launch that has nothing to judge."""
        raise AssertionError("each launched work can fail")
