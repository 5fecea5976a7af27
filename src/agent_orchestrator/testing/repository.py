"""A simulated repository: commits and merges whose names follow from their effects, so that repeating one gives the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint, Merge
from agent_orchestrator.core.inputs import Change, CheckpointEnded, MergeEnded, MergeVerdict
from agent_orchestrator.git.merging import Planned


class SimulatedRepository:
    """What engines of one simulation commit and merge; it outlives them."""

    def __init__(self) -> None:
        self.commits: dict[str, str] = {}
        """Commits on branches, by the effect that made them, in order."""

    def save_tree(self, workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        """Keeps the tree; on the branch too, when asked for, once however often it is repeated."""
        name = _name(effect.id)
        if effect.branch_message is not None:
            self.commits.setdefault(effect.id, name)
        return CheckpointEnded(
            effect=effect.id,
            commit=name,
            tree=name,
            head=_name("head"),
            changed=(Change("M", f"{effect.unit}.txt"),),
            branch_commit=name if effect.branch_message is not None else None,
        )

    def plan(self, repo: Path, effect: Merge) -> Planned | MergeEnded:
        """Every merge can be made."""
        return Planned(commit=_name(effect.id), base=_name("head"))

    def checkout(self, repo: Path, folder: Path, commit: str) -> None:
        """Nothing is checked out."""

    def land(self, repo: Path, effect: Merge, planned: Planned) -> MergeEnded:
        """Lands, once however often it is repeated."""
        self.commits.setdefault(effect.id, planned.commit)
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit=planned.commit)


def _name(of: str) -> str:
    return hashlib.sha1(of.encode()).hexdigest()
