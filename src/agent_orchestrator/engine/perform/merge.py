"""Merges a branch into another: planned, its check run on the merged tree as a launch, then landed.

The check is the only part that takes long and could run beside its repeat, so it alone is a launch; the git commands around
it are short, look first, and give the same commit when repeated after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.agents.output import read_tails
from agent_orchestrator.beneath import write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.effects import KeptTree, Merge, Tree
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import MergeEnded, MergeVerdict, Outcome
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.perform.launch import Launched
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError, is_shortage
from agent_orchestrator.git.merges import PlannedMerge
from agent_orchestrator.git.worktree import merge_folder

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

PLAN = "merge.json"
"""The file that keeps the merge under check: the check may outlive the process that planned it."""

_AGAIN = (FailureKind.STOPPED, FailureKind.LOST)
_RED = (FailureKind.TIMEOUT, FailureKind.IDLE, FailureKind.OUTPUT_LIMIT)


class Merges(Protocol):
    """The port through which branches are merged; every call may be repeated."""

    def plan(self, repo: Path, effect: Merge) -> PlannedMerge | MergeEnded:
        """The merge commit, or why there is none; raises GitFailed."""

    def checkout(self, repo: Path, folder: Path, commit: str) -> None:
        """Makes the folder a worktree of the commit; raises GitFailed."""

    def land(self, repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded:
        """Moves the target to the commit; raises GitFailed."""


class NoMerges:
    """For worlds without git."""

    def plan(self, repo: Path, effect: Merge) -> PlannedMerge | MergeEnded:
        """Nothing can be merged."""
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.UNAVAILABLE, detail="there is no git here")

    def checkout(self, repo: Path, folder: Path, commit: str) -> None:
        """Never asked: nothing was planned."""

    def land(self, repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded:
        """Never asked: nothing was planned."""
        raise AssertionError("a merge that was not planned cannot land")


class MergeWork(Launched):
    """One merge."""

    def __init__(self, driver: Driver, effect: Merge, finished: Finished, *, inherited: bool, same_boot: bool) -> None:
        # Without a check nothing is launched, and what an earlier process did is found by looking.
        super().__init__(driver, effect, finished, inherited=inherited and effect.check is not None, same_boot=same_boot)
        self.effect = msgspec.structs.replace(effect, message=driver.engine.redactor.redact_text(effect.message))
        self._repo = Path(effect.repo) if effect.repo else driver.home
        self._folder = merge_folder(self._repo, driver.run.context.run, effect.into)

    def _prepare(self) -> None:
        if self._unwanted:
            self._spawn()
        else:
            self.engine.offload(None, self._plan, self._planned)

    def _plan(self) -> MergeEnded | OrcError | OSError | None:
        """The outcome, when there is one already; None when the check is to be run."""
        merges, effect = self.engine.world.merges, self.effect
        try:
            plan = merges.plan(self._repo, effect)
            if isinstance(plan, MergeEnded):
                return msgspec.structs.replace(plan, conflict_text=self.engine.redactor.redact_text(plan.conflict_text))
            if effect.check is None:
                return merges.land(self._repo, effect, plan)
            write_plainly(store_of(self.directory), self.directory / PLAN, msgspec.json.encode(plan))
            merges.checkout(self._repo, self._folder, plan.commit)
        except (OrcError, OSError) as error:
            return error if is_shortage(error) else self._unavailable(str(error))
        return None

    def _planned(self, found: MergeEnded | OrcError | OSError | None) -> None:
        if isinstance(found, MergeEnded):
            now_us = self.engine.clock.now_us()
            self.deliver(msgspec.structs.replace(found, started_us=now_us, ended_us=now_us))
        elif found is None or self._unwanted or self._abandoned:
            self.engine.slices.add(self._spawn)
        else:
            self._shortage.later(found, self._prepare, starts=True)

    def deliver(self, outcome: Outcome) -> None:
        """Says where the target is now: a run can go back to before and after each merge."""
        if isinstance(outcome, MergeEnded) and outcome.verdict is MergeVerdict.LANDED and outcome.commit is not None:
            target = Tree(repo=self.effect.repo, branch=self.effect.into)
            kept = KeptTree(commit=outcome.commit, head=outcome.commit, branch=self.effect.into, tree=target, target=True)
            outcome = msgspec.structs.replace(outcome, kept=kept)
        super().deliver(outcome)

    def order(self) -> Order:
        """The check, on the merged tree."""
        env = {
            **self.driver.child_env,
            "RUN_ID": self.driver.run.context.run,
            "STEP_ID": self.effect.unit,
            "REPO_DIR": str(self._folder),
        }
        argv = ("/bin/sh", "-c", self.effect.check or ":")
        return Order(effect=self.effect.id, argv=argv, env=env, cwd=self._folder, stdin=None)

    def limits(self) -> Watch:
        """The check's limits."""
        return Watch(
            timeout_s=self.effect.timeout_s,
            output_limit_bytes=self.effect.output_limit_bytes,
            grace_s=self.engine.stop_grace_s,
        )

    def weight(self, ending: Ending) -> int | None:
        """Landing runs git, so the end of a check that passed is judged in a thread."""
        return None if ending.cause is None else 0

    def judge(self, ending: Ending) -> MergeEnded:
        """Green lands; whatever else happened is said, and the target stays where it is."""
        self.redact(ending.out, ending.err)
        found = self._landed() if ending.cause is None and ending.exit_code == 0 else self._failed(ending)
        return msgspec.structs.replace(
            found,
            exit_code=ending.exit_code,
            tail=self.engine.redactor.redact_text(read_tails(ending)),
            started_us=ending.started_us,
            ended_us=ending.ended_us,
        )

    def _landed(self) -> MergeEnded:
        try:
            plan = typed.decode(self.read_own(PLAN), PlannedMerge)
            return self.engine.world.merges.land(self._repo, self.effect, plan)
        except (OrcError, OSError, msgspec.DecodeError) as error:
            if is_shortage(error):
                raise
            return self._unavailable(str(error))

    def _failed(self, ending: Ending) -> MergeEnded:
        cause = ending.cause
        if cause is not None and cause.kind not in _RED:
            return self.unjudged(ending, cause)
        ended = f"exited with {ending.exit_code}" if cause is None else f"did not end by itself ({cause.message.rstrip('.')})"
        why = f"the check {ended} on the merged tree"
        return MergeEnded(effect=self.effect.id, verdict=MergeVerdict.RED, detail=why, failure=cause)

    def unjudged(self, ending: Ending, failure: Failure) -> MergeEnded:
        """The check never ran, or nothing is known of its end."""
        verdict = MergeVerdict.INTERRUPTED if failure.kind in _AGAIN else MergeVerdict.UNAVAILABLE
        return MergeEnded(
            effect=self.effect.id,
            verdict=verdict,
            detail=failure.message,
            failure=failure,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
        )

    def _unavailable(self, why: str) -> MergeEnded:
        return MergeEnded(effect=self.effect.id, verdict=MergeVerdict.UNAVAILABLE, detail=why)
