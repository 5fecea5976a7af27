"""Worktrees that begin with the results of others: a bead starts from what it depends on, not from before it.

What an agent left uncommitted in its worktree is committed on its branch first. Repeated after a crash, every step finds
what it did before: a committed tree makes no second commit, and a branch that exists is left alone.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git, hold_lock
from agent_orchestrator.git.merges import Conflicts, checkout_of, is_ancestor, merge_trees
from agent_orchestrator.git.repository import WORKTREES, store_folder
from agent_orchestrator.git.snapshots import commit_on_branch, commit_trees, find_commit, find_unfinished_merge, write_tree
from agent_orchestrator.git.worktree import open_tree

PATHS_SHOWN = 5


def open_with_results(home: Path, run: str, tree: Tree) -> None:
    """Make sure that the tree is there; a branch that is new begins with what `onto` names. Raises GitFailed."""
    repo = Path(tree.repo) if tree.repo else home
    if tree.onto and find_commit(repo, f"refs/heads/{tree.branch}") is None:
        with hold_lock(repo, "results"):
            tree = msgspec.structs.replace(tree, start=_start(repo, tree))
    open_tree(home, run, tree)


def _start(repo: Path, tree: Tree) -> str:
    """Return the commit that has the base and every result; those that are merged already, or gone, add nothing."""
    start = find_commit(repo, tree.start or "HEAD")
    assert start is not None, "a repository without a commit has no branches to begin with"
    met: list[str] = []
    for branch in tree.onto:
        commit_left(repo, branch)
        theirs = find_commit(repo, f"refs/heads/{branch}")
        if theirs is None or is_ancestor(repo, theirs, start):
            continue
        start = theirs if is_ancestor(repo, start, theirs) else _merge(repo, start, theirs, branch, (*met, tree.branch))
        met.append(branch)
    return start


def _merge(repo: Path, ours: str, theirs: str, branch: str, others: tuple[str, ...]) -> str:
    merged = merge_trees(repo, ours, theirs)
    if isinstance(merged, Conflicts):
        where, beside = ", ".join(merged.paths[:PATHS_SHOWN]), ", ".join(others[:-1]) or "what is checked out"
        detail = f"{others[-1]} would begin with {branch} and {beside}, and both changed {where}; merge them, then try again"
        raise GitFailed(command="merge", where=repo, detail=detail)
    return commit_trees(repo, merged, (ours, theirs), f"Merge {branch}: {others[-1]} begins with it", _date_us(repo, theirs))


def commit_left(repo: Path, branch: str) -> None:
    """Commit what an agent left uncommitted in the worktree of a branch; a checkout of a person's is left alone."""
    folder = checkout_of(repo, branch)
    if folder is None or not folder.is_relative_to(repo / WORKTREES) or find_unfinished_merge(folder).other is not None:
        return
    scratch = store_folder(repo) / "scratch" / folder.name
    with hold_lock(folder, f"saving~{folder.name}"):
        at_us = _date_us(repo, f"refs/heads/{branch}")
        commit_on_branch(folder, scratch, write_tree(folder, scratch), f"Work on {branch}", at_us)


def _date_us(repo: Path, commit: str) -> int:
    """Return a commit's date: what is made of it has the same, so that repeating it makes the same commit."""
    return int(git(repo, "log", "-1", "--format=%ct", commit)) * US
