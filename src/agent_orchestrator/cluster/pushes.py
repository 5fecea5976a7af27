"""A world in which nothing becomes a fact of a run before its remote has it: another host can go on from any row of the journal.

Trees that are kept, checkpoints and merges are pushed behind the run's fence before the engine hears of them. A remote that is
away is a shortage: the engine waits, and no attempt is lost.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.cluster.homes import OpenHome
from agent_orchestrator.core.effects import Checkpoint, KeptTree, Merge, Tree
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded, MergeEnded
from agent_orchestrator.engine.engine import World
from agent_orchestrator.engine.perform.merge import Merges
from agent_orchestrator.git.agent_trees import drop_working
from agent_orchestrator.git.merges import PlannedMerge


def push_first(world: World, home: OpenHome) -> World:
    """Return the world with every tree, checkpoint and merge pushed before it counts."""
    pushing = _Pushing(world, home)
    keep = pushing.keep if world.keep_tree is not None else None
    return msgspec.structs.replace(world, save_tree=pushing.save, keep_tree=keep, merges=_PushedMerges(world.merges, home))


class _Pushing:
    """Trees that are kept and saved."""

    def __init__(self, world: World, home: OpenHome) -> None:
        self._world, self._home = world, home
        self._unpushed: dict[Path, KeptTree] = {}
        """Trees that were kept and not pushed yet: whoever keeps them again is told that nothing is new."""

    def keep(self, folder: Path, scratch: Path, run: RunId, tree: Tree | None) -> KeptTree | None:
        """Keep a tree and push it."""
        assert self._world.keep_tree is not None, "only a world that keeps trees is asked to"
        kept = self._world.keep_tree(folder, scratch, run, tree) or self._unpushed.get(folder)
        if kept is not None:
            self._unpushed[folder] = kept
            drop_working(self._home.folder, run, kept.branch)
            self._home.push()
            del self._unpushed[folder]
        return kept

    def save(self, workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        """Make a checkpoint and push it."""
        saved = self._world.save_tree(workdir, scratch, effect)
        self._home.push()
        return saved


class _PushedMerges:
    """Merges that are landed here and at the remote."""

    def __init__(self, merges: Merges, home: OpenHome) -> None:
        self._merges, self._home = merges, home

    def plan(self, repo: Path, effect: Merge) -> PlannedMerge | MergeEnded:
        """Plan it; one that is found to have landed before may not have been pushed."""
        planned = self._merges.plan(repo, effect)
        if isinstance(planned, MergeEnded):
            self._home.push()
        return planned

    def checkout(self, repo: Path, folder: Path, commit: str) -> None:
        """Check it out."""
        self._merges.checkout(repo, folder, commit)

    def land(self, repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded:
        """Land it and push it."""
        landed = self._merges.land(repo, effect, planned)
        self._home.push()
        return landed
