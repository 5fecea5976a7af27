"""Removes the branches and worktrees of runs that nobody needs any more; what is only there is kept under a ref first.

Each step looks first: after a crash the same call goes on where the last one stopped. A worktree is moved aside before it is
deleted, so that nobody ever finds half of one.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.command import ask_git, git, hold_lock
from agent_orchestrator.git.merges import checkout_of, is_ancestor
from agent_orchestrator.git.ownership import index_commit, list_uncommitted
from agent_orchestrator.git.repository import WORKTREES, own_dir
from agent_orchestrator.git.snapshots import (
    Backup,
    commit_trees,
    find_commit,
    find_head,
    is_clean,
    restore_snapshot,
    write_tree,
)
from agent_orchestrator.git.worktree import branch_of, delete_worktrees

FILES_SHOWN = 5


def remove_branch(repo: Path, branch: str, into: str, folder: Path | None) -> str | None:
    """Remove a branch that is merged, with its worktree; returns why it stays, or None. Raises GitFailed.

    Where a checkout of the user's is on it, that goes to the branch which has the work.
    """
    tip, target = find_commit(repo, f"refs/heads/{branch}"), find_commit(repo, into)
    if tip is not None and (target is None or not is_ancestor(repo, tip, target)):
        return f"the branch {branch} has commits that {into} has not"
    worktree = folder if folder is not None and (folder / ".git").exists() else None
    users = checkout_of(repo, branch) if tip is not None else None
    users = None if users is None or (worktree is not None and users.samefile(worktree)) else users
    for place in (one for one in (worktree, users) if one is not None):
        changed = list_uncommitted(place)
        if changed:
            more = " and more" if len(changed) > FILES_SHOWN else ""
            return f"{place} has changes that are not committed ({', '.join(changed[:FILES_SHOWN])}{more})"
    if worktree is not None and (why := _say_submodules(worktree)) is not None:
        return why
    if users is not None:
        if find_commit(repo, f"refs/heads/{into}") is None or checkout_of(repo, into) is not None:
            return f"the branch {branch} is checked out in {users}"
        git(users, "switch", "--quiet", into)
    _remove(repo, branch, tip, folder)
    return None


def remove_scratch(repo: Path, run: str, works: tuple[str, ...], *, completed: bool) -> None:
    """Remove a run's worktrees that hold no work of their own: those of checked merges, and of looks at what was merged.

    A run that did not complete may go on in the latter. The home of a fork, itself a worktree, has them in it.
    """
    places = (repo / WORKTREES / run / WORKTREES, repo / WORKTREES)
    for folder in (one for place in places for one in sorted(place.glob(f"{run}~*"))):
        if folder.name.startswith(f"{run}~~"):
            _remove_folder(repo, folder)
            continue
        branch = find_branch(folder) if (folder / ".git").exists() else None
        if branch is None or branch in works or not completed:
            continue
        if _is_elsewhere(repo, branch) and not list_uncommitted(folder) and _say_submodules(folder) is None:
            _remove(repo, branch, find_commit(repo, f"refs/heads/{branch}"), folder)
    if completed:
        _remove_unused(repo, f"{branch_of(run)}/", works)


def _remove_unused(repo: Path, prefix: str, works: tuple[str, ...]) -> None:
    """Remove branches of ours that have no worktree, and no commit that is not on another branch."""
    for line in git(repo, "for-each-ref", "--format=%(refname:lstrip=2) %(worktreepath)", f"refs/heads/{prefix}").splitlines():
        branch, _, place = line.partition(" ")
        if not place and branch not in works and _is_elsewhere(repo, branch):
            _remove(repo, branch, find_commit(repo, f"refs/heads/{branch}"), None)


def _is_elsewhere(repo: Path, branch: str) -> bool:
    """Tell whether another branch has all commits of this one."""
    found = git(repo, "for-each-ref", "--format=%(refname)", f"--contains=refs/heads/{branch}", "refs/heads/").splitlines()
    return any(ref != f"refs/heads/{branch}" for ref in found)


def keep_branch(repo: Path, branch: str, folder: Path | None, scratch: Path, backup: Backup) -> str | None:
    """Keep all commits of a branch, and what is uncommitted in its worktree, under a ref; None where there is no such branch.

    The ref is the one wanted, or the next free name where that keeps something else.
    """
    tip = find_commit(repo, f"refs/heads/{branch}")
    commit = tip
    if folder is not None and (folder / ".git").exists():
        head = find_head(folder)
        parents = tuple(dict.fromkeys(one for one in (tip, head) if one is not None))
        if not is_clean(folder) or len(parents) > 1:
            with hold_lock(folder, f"saving~{folder.name}"):
                commit = commit_trees(repo, write_tree(folder, scratch), parents, backup.message, backup.at_us)
    if commit is None:
        return None
    return keep_commit(repo, commit, backup)


def keep_commit(repo: Path, commit: str, backup: Backup) -> str:
    """Keep a commit under the ref of a backup, or under the next free name where that keeps something else; return the ref."""
    ref, number = backup.ref, 1
    while (known := find_commit(repo, ref)) is not None and known != commit:
        number += 1
        ref = f"{backup.ref}-{number}"
    git(repo, "update-ref", ref, commit)
    return ref


def remove_kept(repo: Path, branch: str, folder: Path | None) -> str | None:
    """Remove a branch whose commits a ref keeps, and its worktree with all that is in it; returns why it stays, or None."""
    tip = find_commit(repo, f"refs/heads/{branch}")
    users = checkout_of(repo, branch) if tip is not None else None
    if users is not None and (folder is None or users.resolve() != folder.resolve()):
        return f"the branch {branch} is checked out in {users}: switch to another one there, then delete it"
    if folder is not None and (why := _say_submodules(folder)) is not None:
        return why
    _remove(repo, branch, tip, folder)
    return None


def _say_submodules(worktree: Path) -> str | None:
    """Say why a worktree must stay: the repositories of its submodules are its own, and would go with it."""
    own = own_dir(worktree)
    if own is None or not (own / "modules").is_dir():
        return None
    way = f"push them, then: git worktree remove --force {worktree}"
    return f"{worktree} has submodules, whose new commits may be nowhere else: {way}"


def _remove(repo: Path, branch: str, tip: str | None, folder: Path | None) -> None:
    if folder is not None:
        _remove_folder(repo, folder)
    if tip is not None:
        git(repo, "update-ref", "-d", f"refs/heads/{branch}", tip)
        ask_git(repo, "config", "--remove-section", f"branch.{branch}", answers=(0, 5, 128))


def _remove_folder(repo: Path, folder: Path) -> None:
    with hold_lock(repo, "worktrees"):
        delete_worktrees(repo, (folder,))


def take_back(workdir: Path, scratch: Path, start: str, backup: Backup) -> None:
    """Make a checkout what it was in the snapshot `start`, with the commit that it was on; the ref keeps what is there."""
    with hold_lock(workdir, f"saving~{workdir.name}"):
        restore_snapshot(workdir, scratch, start, backup)
        now, before = find_head(workdir), find_commit(workdir, f"{start}^1")
        if before is not None and now != before:
            git(workdir, "update-ref", "-m", backup.message, "HEAD", before, now or "")
            index_commit(workdir, "HEAD")
