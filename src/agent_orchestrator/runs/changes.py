"""The changes of a run's works: the two trees between which a diff shows them, also when they are merged or discarded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.beneath import open_folder, reach_folder
from agent_orchestrator.errors import GitFailed, Refused, Shortage
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.diffs import EMPTY_TREE, ChangedFile, TreePair, find_fork_point, list_changed
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.snapshots import find_commit, is_clean, write_tree
from agent_orchestrator.runs.brought import bring_run
from agent_orchestrator.runs.work import Work
from agent_orchestrator.runs.works import find_works, pick_works

if TYPE_CHECKING:
    from agent_orchestrator.core.finish import Finish
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


class WorkChange(msgspec.Struct, frozen=True):
    """A work, and the trees before and after it."""

    work: Work
    difference: TreePair

    def files(self) -> tuple[ChangedFile, ...]:
        """Return the files that it changes; raises GitFailed."""
        return list_changed(self.difference)


def find_changes(orchestrator: Orchestrator, run: StoredRun, unit: str | None = None) -> list[WorkChange]:
    """Return the changes of a unit, or all of a run; raises Refused where nothing is known of them."""
    orchestrator, run = bring_run(orchestrator, run, ended=False)
    folded = orchestrator.fold(run)
    works = pick_works(orchestrator, run, unit, folded)
    found: dict[tuple[str, str, str], WorkChange] = {}
    missing = ""
    for work in works:
        try:
            change = WorkChange(work, find_difference(orchestrator, run, work, folded))
        except Refused as error:
            missing = str(error)
            continue
        one = change.difference
        found.setdefault((str(one.repo), one.old, one.new), change)
    if not found:
        raise Refused(why=missing)
    return list(found.values())


def find_judged_changes(orchestrator: Orchestrator, run: StoredRun, unit: str) -> list[WorkChange]:
    """Return the changes that a question of a unit is about: its own, or all of the run where it has none; raises Refused."""
    orchestrator, run = bring_run(orchestrator, run, ended=False)
    own = any(work.unit == unit for work in find_works(orchestrator, run))
    return find_changes(orchestrator, run, unit if own else None)


def find_difference(orchestrator: Orchestrator, run: StoredRun, work: Work, folded: Folded) -> TreePair:
    """Return the trees before and after one work; raises Refused where one of them is gone."""
    repo, finish = Path(work.repo), folded.state.doing.finish
    if not work.branch:
        return _in_place(orchestrator, run, work, finish)
    tip = find_commit(repo, f"refs/heads/{work.branch}") or (work.tip and find_commit(repo, work.tip)) or None
    kept = finish.discarded.get(work.branch, "")
    held = finish.landings.get(work.unit)
    landed = held.commit if held is not None and held.landed and held.commit else work.landed
    if tip is None and kept:
        tip = find_commit(repo, kept)
    merged = landed and find_commit(repo, landed) and (tip is None or is_ancestor(repo, tip, landed))
    if landed and merged:
        return TreePair(repo, find_commit(repo, f"{landed}^1") or EMPTY_TREE, landed)
    if tip is None:
        raise Refused(why=f"The branch {work.branch} of run {run.id} is gone; `git reflog --all` may still know its commits.")
    target = work.into or find_branch(repo) or "HEAD"
    old = work.begin or find_fork_point(repo, target if find_commit(repo, target) else "HEAD", tip) or EMPTY_TREE
    watched = work.apart or not run.summary.ended
    if watched and work.folder and Path(work.folder, ".git").exists():
        folder = Path(work.folder)
        with hold_lock(folder, f"saving~{folder.name}"):  # While its files are committed they are in neither list.
            if not is_clean(folder):
                return TreePair(repo, old, tree_now(orchestrator, folder))
    # Asked for again: what was uncommitted a moment ago may have been committed before the tree was looked at.
    return TreePair(repo, old, find_commit(repo, f"refs/heads/{work.branch}") or tip)


def _in_place(orchestrator: Orchestrator, run: StoredRun, work: Work, finish: Finish) -> TreePair:
    repo = Path(work.repo)
    old = find_commit(repo, work.begin)
    if old is None:
        why = f"The tree that run {run.id} found in {work.repo} was not kept, so that its changes are not known"
        raise Refused(why=f"{why}; `git -C {work.repo} diff` shows what is uncommitted there.")
    kept = finish.discarded.get(work.folder, "") or work.end
    new = find_commit(repo, kept) if kept else None
    return TreePair(repo, old, new or tree_now(orchestrator, repo))


def tree_now(orchestrator: Orchestrator, folder: Path) -> str:
    """Return the files of a working tree as they are, as a tree."""
    root = orchestrator.settings.folder
    with open_folder(root, root / "scratch", make=True):
        base = reach_folder(root, root / "scratch")
    # A command that ends while a thread of it looks deletes the folder under it, which nobody needs to hear of.
    with tempfile.TemporaryDirectory(dir=base, prefix="look-", ignore_cleanup_errors=True) as scratch:
        return write_tree(folder, Path(scratch))


class ChangeSize(msgspec.Struct, frozen=True):
    """The size of changes; binary files have no lines."""

    files: int = 0
    added: int = 0
    removed: int = 0

    @classmethod
    def of(cls, files: tuple[ChangedFile, ...]) -> ChangeSize:
        """Count them."""
        return cls(len(files), sum(one.added or 0 for one in files), sum(one.removed or 0 for one in files))

    def __add__(self, other: ChangeSize) -> ChangeSize:
        return ChangeSize(self.files + other.files, self.added + other.added, self.removed + other.removed)


def measure(orchestrator: Orchestrator, run: StoredRun, work: Work, folded: Folded) -> ChangeSize | None:
    """Return the size of a work; None where it is not known."""
    try:
        return ChangeSize.of(list_changed(find_difference(orchestrator, run, work, folded)))
    except (GitFailed, Refused, Shortage, OSError):
        return None
