"""The part that going back and forking share: a run at a point of its past, and its trees, which become what they were.

The fact comes first, then the trees: whoever drives the run next, after a crash in between, brings them back before anything
starts. So a run is never half at one point and half at another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_orchestrator.core.effects import KeptTree, RunAgent, Tree, TreeReturn
from agent_orchestrator.core.events import Event, Forked, TreeKept, WentBack
from agent_orchestrator.core.finish import UNIT as MERGES
from agent_orchestrator.core.launch_events import AgentLaunchFinished
from agent_orchestrator.engine.journal import decode_events, fold
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.repository import checkout_of, host_of, is_worktree_place, top_level
from agent_orchestrator.git.snapshots import Backup, find_commit
from agent_orchestrator.git.tree_returns import (
    bring_again,
    bring_back,
    copy_branch,
    copy_refs,
    drop_branch,
    list_backups,
    make_copy,
    move_branch,
)
from agent_orchestrator.git.worktree import folder_of, is_filled
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Row, StoredRun
from agent_orchestrator.systems import find_system


class Place(NamedTuple):
    """A checkout, or a branch of a repository that has a worktree of its own or none."""

    repo: str
    branch: str


class Past:
    """A run at a point of its journal, and what is known of it since."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun, seq: int) -> None:
        self.run, self.seq = run, seq
        self.system = find_system(run.system)
        self.rows: list[Row] = orchestrator.store.rows(run.id)
        self.folded = fold(orchestrator.store, self.system, run, seq)
        self.now = orchestrator.fold(run)
        self.home, self.workdir = Path(run.context.home), Path(run.context.workdir)

    def events(self, *, after: bool) -> Iterator[Event]:
        """Yield the events up to the point, or those after it, history included."""
        for seq, _, body in self.rows:
            if (seq > self.seq) == after:
                yield from decode_events(self.system, body)

    def sessions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the sessions known at the point that nobody went on with since, and those that somebody did."""
        known = {one.session for one in self.events(after=False) if isinstance(one, AgentLaunchFinished) and one.session}
        later = {one.session for one in self.events(after=True) if isinstance(one, AgentLaunchFinished) and one.session}
        later |= {one.session for one in self.now.state.doing if isinstance(one, RunAgent) and one.session}
        return tuple(sorted(known - later)), tuple(sorted(later))

    def trees(self) -> dict[Place, KeptTree]:
        """Return the trees of the point, the newest last; of one that was not looked at before it, the first kept after it.

        A branch that something was first merged into after the point was then where that merge began. The run's own tree
        counts only where its units work in it.
        """
        kept = self.folded.state.doing.kept.values()
        found = {self.place(one): one for one in kept}
        for event in self.events(after=True):
            if isinstance(event, TreeKept) and self.place(event.kept) not in found and (one := self._before(event.kept)):
                found[self.place(one)] = one
        return self._at_work(found)

    def newest(self) -> dict[Place, KeptTree]:
        """Return the newest tree of each place."""
        return self._at_work({self.place(one): one for one in self.now.state.doing.kept.values()})

    def found(self, place: Place) -> tuple[tuple[str, str], ...]:
        """Return the pairs of trees of a place between which no unit worked: the second was found when the run was taken up."""
        pairs, last = [], ""
        for event in (one for after in (False, True) for one in self.events(after=after)):
            if isinstance(event, WentBack):
                back = [one.kept.commit for one in event.trees if one.kept is not None and self.place(one.kept) == place]
                last = back[0] if back else last
            elif isinstance(event, TreeKept) and self.place(event.kept) == place and event.kept.commit:
                if not event.unit and last not in ("", event.kept.commit):
                    pairs.append((last, event.kept.commit))
                last = event.kept.commit
        return tuple(pairs)

    def _at_work(self, trees: dict[Place, KeptTree]) -> dict[Place, KeptTree]:
        """Leave out places that no unit works in, and branches that only a person merged into: such a merge stays."""
        used = {
            self.place(one.kept)
            for after in (False, True)
            for one in self.events(after=after)
            if isinstance(one, TreeKept) and one.unit not in ("", MERGES)
        }
        return {place: kept for place, kept in trees.items() if place in used or not (used or kept.target)}

    def place(self, kept: KeptTree) -> Place:
        """Return the place of a tree: a checkout has no branch of the run's own, whatever is checked out there."""
        repo, branch = kept.place
        return Place(repo or str(self.home), branch) if branch else Place(checkout_of(repo or str(self.workdir)), "")

    def folder(self, place: Place) -> Path:
        """Return the working tree of a place; there may be none."""
        if place.branch:
            return folder_of(self.home, self.run.context.run, Tree(repo=place.repo, branch=place.branch))
        return self.workdir if place.repo == checkout_of(str(self.workdir)) else Path(place.repo)

    def _before(self, kept: KeptTree) -> KeptTree | None:
        if not kept.place[1]:
            return kept
        first = find_commit(Path(self.place(kept).repo), f"{kept.head}^1") if kept.target else None
        return msgspec.structs.replace(kept, commit=first, head=first) if first is not None else None


def refuse_without_git(run: StoredRun, what: str) -> None:
    """Raise Refused outside a repository: there is nothing that trees were kept in."""
    if top_level(host_of(Path(run.context.workdir))) is None:  # Its worktree may be gone, after a merge.
        raise Refused(why=f"{what} needs git for the working tree, and {run.context.workdir} is in no repository.")


def return_trees(orchestrator: Orchestrator, run: StoredRun, going: WentBack | Forked) -> tuple[str, ...]:
    """Bring the trees of a run to the point that it is at; return the refs of what was there. May be repeated.

    The backups have the date of the fact: made again after a kill, they are the same, and told again.
    """
    if isinstance(going, Forked):
        _make_trees(run, going)
        return ()
    at_us = _told_us(orchestrator, run, going)
    prefix = f"refs/orc/{run.id}/@before-{going.generation}/"
    scratch = orchestrator.settings.folder / "launches" / run.id / "rewind"
    message = f"{run.id}: before it went back to {going.point}"
    for tree in going.trees:
        name = f"heads/{tree.branch}" if tree.branch else "tree"
        with hold_lock(Path(tree.repo), "returning"):
            _bring(tree, scratch, Backup(f"{prefix}{name}", message, at_us))
    repos = dict.fromkeys(tree.repo for tree in going.trees)
    return tuple(ref for repo in repos for ref in list_backups(Path(repo), prefix))


def _told_us(orchestrator: Orchestrator, run: StoredRun, going: WentBack) -> int:
    """Return the time at which the run was said to go back."""
    system = find_system(run.system)
    rows = reversed(orchestrator.store.rows(run.id, going.to))
    return next(at_us for _, at_us, body in rows if going in decode_events(system, body)[:1])


def _make_trees(run: StoredRun, fork: Forked) -> None:
    for repo in dict.fromkeys(tree.repo for tree in fork.trees):
        copy_refs(Path(repo), fork.of, run.id)
    for tree in fork.trees:
        assert tree.kept is not None, "a fork has only trees that there were"
        if tree.folder:
            make_copy(Path(tree.repo), Path(tree.folder), tree.branch, tree.kept)
        else:
            copy_branch(Path(tree.repo), tree.branch, tree.kept)


def _bring(tree: TreeReturn, scratch: Path, backup: Backup) -> None:
    repo, folder = Path(tree.repo), Path(tree.folder) if tree.folder else None
    if tree.kept is None:
        drop_branch(repo, folder, tree.branch, scratch, backup)
    elif folder is None:
        move_branch(repo, tree.branch, tree.kept.head, backup)
    elif folder.is_dir() and (is_filled(folder) or not is_worktree_place(folder)):
        bring_back(tree, scratch, backup)
    else:
        bring_again(tree, backup)
