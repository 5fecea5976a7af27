"""A simulated git for engines in a simulated world: branches collide, merges conflict, checkouts are in the way, by the seed.

What it says of one effect it says again when the effect is repeated after a crash, as the real one does.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint, Merge
from agent_orchestrator.core.inputs import CheckpointEnded, Collision, Commit, FileChange, MergeEnded, MergeVerdict
from agent_orchestrator.git.merges import PlannedMerge
from agent_orchestrator.testing.faults import Faults

REFUSALS = (MergeVerdict.CONFLICT, MergeVerdict.HELD, MergeVerdict.UNAVAILABLE)


class SimulatedGit:
    """The branches of a simulated repository; it outlives every engine, as a repository does."""

    def __init__(self, seed: int, faults: Faults, trouble: float = 0.2) -> None:
        self._seed, self._faults, self._trouble = seed, faults, trouble
        self.landed: dict[tuple[str, str], str] = {}
        self.tips: dict[str, str] = {}
        """Where each target stands: every merge is made on top of the last."""
        self.commits: dict[str, str] = {}
        """Commits and merges on branches, by the effect that made them, in order; repeated, it is the same one."""

    def _fate(self, effect: str) -> random.Random:
        return random.Random(f"{self._seed}/{effect}")

    def save_tree(self, workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        """Save the tree, or say that the agent left it so that it cannot be saved."""
        self._faults.boundary()
        fate = self._fate(effect.id)
        if fate.random() < self._trouble / 4:
            return CheckpointEnded(effect=effect.id, unavailable="a merge was left unfinished")
        rivals = [Collision(name, ("shared.py",)) for name in effect.rivals if fate.random() < self._trouble]
        commit = _name(effect.id)
        if effect.branch_message is not None:
            self.commits.setdefault(effect.id, commit)
        return CheckpointEnded(
            effect=effect.id,
            commit=commit,
            tree=commit,
            head=_name("head"),
            changed=(FileChange("M", f"{effect.unit}.txt", _name("blob")),),
            diff="+ work",
            branch_commit=commit if effect.branch_message is not None else None,
            commits=(Commit(commit[:7], "Work"),),
            collisions=tuple(rivals),
        )

    def plan(self, repo: Path, effect: Merge) -> PlannedMerge | MergeEnded:
        """Return the merge commit, or why there is none."""
        self._faults.boundary()
        if (known := self.landed.get((effect.into, effect.branch))) is not None:
            return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit=known)
        fate = self._fate(effect.id)
        if fate.random() < self._trouble:
            return MergeEnded(
                effect=effect.id, verdict=fate.choice(REFUSALS), detail="it cannot be merged", conflicts=("shared.py",)
            )
        return PlannedMerge(commit=_name(effect.id), base=self.tips.get(effect.into, ""))

    def checkout(self, repo: Path, folder: Path, commit: str) -> None:
        """Do nothing: every commit can be checked out."""
        self._faults.boundary()

    def land(self, repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded:
        """Move the target; a crash can come before it or after."""
        self._faults.boundary()
        if self.landed.get((effect.into, effect.branch)) != planned.commit:
            if self.tips.get(effect.into, "") != planned.base or self._fate(effect.id + "+").random() < self._trouble / 2:
                return MergeEnded(effect=effect.id, verdict=MergeVerdict.MOVED, detail="the target moved")
            assert (effect.into, effect.branch) not in self.landed, f"{effect.branch} was merged twice"
            self.landed[effect.into, effect.branch] = self.tips[effect.into] = planned.commit
            self.commits.setdefault(effect.id, planned.commit)
        self._faults.boundary()
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit=planned.commit)


def _name(of: str) -> str:
    return hashlib.sha1(of.encode()).hexdigest()
