"""Brings working trees back to what they were at a point of a run, or makes new ones that are as they were then.

What is there is kept under a ref first, uncommitted work and the index included. Every step may be repeated: after a crash
in the middle the same call ends what was begun.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.core.effects import KeptTree, TreeReturn
from agent_orchestrator.errors import GitFailed, Refused
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.cleanup import keep_branch, keep_commit, remove_kept
from agent_orchestrator.git.command import ask_git, git, give_names, hold_lock, list_names
from agent_orchestrator.git.leftovers import forget_index
from agent_orchestrator.git.merges import checkout_of, find_obstacle, is_ancestor
from agent_orchestrator.git.moves import move_checkout, settle_landing
from agent_orchestrator.git.ownership import index_commit, take_from_tree
from agent_orchestrator.git.repository import own_dir, top_level
from agent_orchestrator.git.snapshots import (
    Backup,
    commit_trees,
    find_commit,
    find_head,
    restore_snapshot,
    write_tree,
)
from agent_orchestrator.git.worktree import begin_worktree, copy_included, is_filled

UNFINISHED = {"MERGE_HEAD": "merge", "rebase-merge": "rebase", "rebase-apply": "rebase", "CHERRY_PICK_HEAD": "cherry-pick"}
ZERO = "0" * 40


def refuse_unready(folder: Path, kept: KeptTree) -> None:
    """Raise Refused where a working tree cannot be brought back: nothing was kept, or somebody is in the middle of something."""
    if not kept.commit:
        raise Refused(why=f"The tree in {folder} could not be kept at that point: {kept.problem}.")
    if find_commit(folder, kept.commit) is None:
        raise Refused(why=f"The tree of that point, {kept.commit[:12]}, is gone from the repository in {folder}.")
    top = top_level(folder) or folder
    inside = own_dir(top)
    for name, what in UNFINISHED.items():
        if inside is not None and (inside / name).exists():
            raise Refused(why=f"A {what} is not finished in {top}; finish or abort it first.")
    found = find_branch(top)
    if found != (kept.branch or None):
        there, then = found or "no branch", kept.branch or "no branch"
        way = f"git -C {top} switch {kept.branch}" if kept.branch else f"git -C {top} switch --detach"
        if kept.branch and find_commit(top, f"refs/heads/{kept.branch}") is None:  # It was merged, and removed.
            way = f"git -C {top} switch --create {kept.branch} {kept.head[:12]}"
        raise Refused(why=f"{top} is on {there} now, and the run was on {then} at that point; go back to it first: {way}")


def bring_back(tree: TreeReturn, scratch: Path, backup: Backup) -> None:
    """Make a working tree, and the branch checked out in it, what they were; refs keep what was there.

    Only files that differ are touched, and what appeared while no unit worked stays.
    """
    folder, kept = Path(tree.folder), tree.kept
    assert kept is not None, "there is a tree to bring back"
    top = top_level(folder) or folder
    with hold_lock(folder, f"saving~{folder.name}"):
        _keep_index(top, backup)
        restore_snapshot(folder, scratch, _with_others(top, scratch, tree, kept.commit, backup), backup)
        head = find_head(top)
        if kept.head and head != kept.head:
            if head is not None and not _is_kept(top, head, backup):
                keep_commit(top, head, backup)
            name = f"refs/heads/{kept.branch}" if kept.branch else "HEAD"
            git(top, "update-ref", "--no-deref", "-m", backup.message, name, kept.head, head or ZERO)
        if kept.head:
            index_commit(top, kept.head)


def _is_kept(repo: Path, commit: str, backup: Backup) -> bool:
    """Return True if the ref of a backup has a commit in its history."""
    return find_commit(repo, backup.ref) is not None and is_ancestor(repo, commit, backup.ref)


def _keep_index(top: Path, backup: Backup) -> None:
    """Keep what is staged, where it is neither in the current commit nor in the files, nor was when they were kept."""
    head = find_head(top)
    try:
        tree = git(top, "write-tree")
    except GitFailed:
        return  # Conflicts: a merge that is not finished was refused before.
    places = ("HEAD", backup.ref, f"{backup.ref}^1")
    known = {git(top, "rev-parse", f"{one}^{{tree}}") for one in places if find_commit(top, one) is not None}
    if head is not None and tree not in known and _is_staged_apart(top):
        commit = commit_trees(top, tree, (head,), f"{backup.message} (staged)", backup.at_us, internal=True)
        keep_commit(top, commit, msgspec.structs.replace(backup, ref=f"{backup.ref}-index"))


def _is_staged_apart(top: Path) -> bool:
    return ask_git(top, "diff-files", "--quiet", answers=(0, 1))[0] == 1


def _with_others(top: Path, scratch: Path, tree: TreeReturn, target: str, backup: Backup) -> str:
    """Return the wanted commit with the files added that are not the run's."""
    now = write_tree(top, scratch)
    how = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
    pairs = [*tree.found, (tree.newest, now)] if tree.newest else tree.found
    new = {name for old, later in pairs if _has(top, old, later) for name in list_names(top, *how, old, later)}
    if new:
        new &= set(list_names(top, "ls-tree", "-r", "-z", "--name-only", "--full-tree", now))
        new -= set(list_names(top, "ls-tree", "-r", "-z", "--name-only", "--full-tree", target))
    if not new:
        return target
    index = scratch / "spared-index"
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        git(top, "read-tree", target, env=env)
        take_from_tree(top, now, sorted(new), env)
        return commit_trees(top, git(top, "write-tree", env=env), (target,), backup.message, backup.at_us, internal=True)
    finally:
        index.unlink(missing_ok=True)


def _has(top: Path, *trees: str) -> bool:
    return all(ask_git(top, "cat-file", "-e", f"{one}^{{tree}}", answers=(0, 1, 128))[0] == 0 for one in trees)


def make_copy(repo: Path, folder: Path, branch: str, kept: KeptTree) -> None:
    """Make a worktree on a branch that is as another tree was, unless it is made; uncommitted work of then is uncommitted again.

    The index comes last: a worktree that has one is whole, and whatever is in it since is left alone.
    """
    with hold_lock(repo, "worktrees"):
        if is_filled(folder):
            return
        if find_commit(repo, f"refs/heads/{branch}") != kept.head:
            git(repo, "update-ref", f"refs/heads/{branch}", kept.head)
        begin_worktree(repo, folder, branch)
        own = own_dir(folder)
        assert own is not None, "a worktree has a git directory"
        index = own / "index.copied"
        forget_index(index)
        env = {"GIT_INDEX_FILE": str(index)}
        git(folder, "read-tree", "--reset", "-u", kept.commit, env=env)
        index_commit(folder, kept.head, env)
        copy_included(repo, folder)
        index.replace(own / "index")


def bring_again(tree: TreeReturn, backup: Backup) -> None:
    """Make a working tree again that was taken away since; a ref keeps where its branch was."""
    assert tree.kept is not None, "there is a tree to bring back"
    repo, branch = Path(tree.repo), tree.branch or tree.kept.branch
    tip = find_commit(repo, f"refs/heads/{branch}")
    if tip not in (None, tree.kept.head):
        keep_commit(repo, str(tip), backup)
    make_copy(repo, Path(tree.folder), branch, tree.kept)


def copy_branch(repo: Path, branch: str, kept: KeptTree) -> None:
    """Make a branch where another one was, unless it is there."""
    if find_commit(repo, f"refs/heads/{branch}") is None:
        git(repo, "update-ref", f"refs/heads/{branch}", kept.head, ZERO)


def refuse_moved_on(repo: Path, branch: str, newest: str, target: str) -> None:
    """Raise Refused where a branch has more than the run brought to it: others' commits are not taken off."""
    tip = find_commit(repo, f"refs/heads/{branch}")
    if tip is not None and tip not in (newest, target):
        raise Refused(
            why=f"{branch} has commits since that are not the run's; `orc fork` continues from that point on branches of its own."
        )


def refuse_in_the_way(repo: Path, branch: str, commit: str) -> None:
    """Raise Refused where the checkout of a branch has something that would be lost if it went to a commit."""
    obstacle = find_obstacle(repo, branch, commit, "going back")
    if obstacle is not None:
        raise Refused(why=f"Nothing was touched: {obstacle}, then rewind.")


def refuse_checked_out(repo: Path, branch: str, folder: Path | None) -> None:
    """Raise Refused where somebody's checkout is on a branch that is moved or taken away with its own worktree."""
    place = checkout_of(repo, branch)
    if place is not None and (folder is None or place.resolve() != folder.resolve()):
        raise Refused(why=f"The branch {branch} is checked out in {place}: switch to another one there, then rewind.")


def move_branch(repo: Path, branch: str, commit: str, backup: Backup) -> None:
    """Move a branch back, its checkout with it; a ref keeps its tip. Raises GitFailed where something is in the way."""
    settle_landing(repo)
    tip = find_commit(repo, f"refs/heads/{branch}")
    if tip == commit:
        return
    folder = checkout_of(repo, branch)
    if tip is None or folder is None:
        if tip is not None:
            keep_commit(repo, tip, backup)
        git(repo, "update-ref", "-m", backup.message, f"refs/heads/{branch}", commit, tip or ZERO)
        return
    obstacle = find_obstacle(repo, branch, commit, "going back")
    if obstacle is not None:
        raise GitFailed(command="read-tree", where=folder, detail=obstacle)
    keep_commit(repo, tip, backup)
    move_checkout(folder, branch, tip, commit, backup.message)


def drop_branch(repo: Path, folder: Path | None, branch: str, scratch: Path, backup: Backup) -> None:
    """Take a branch that did not exist yet, and its worktree, away; a ref keeps what was in it. Raises GitFailed."""
    tip = find_commit(repo, f"refs/heads/{branch}")
    there = folder is not None and (folder / ".git").exists()
    if there or (tip is not None and not _is_kept(repo, tip, backup)):
        keep_branch(repo, branch, folder, scratch, backup)
    why = remove_kept(repo, branch, folder)
    if why is not None:
        raise GitFailed(command="worktree remove", where=folder or repo, detail=why)


def list_backups(repo: Path, prefix: str) -> list[str]:
    """Return the refs below a prefix, those of checkouts before those of branches."""
    refs = git(repo, "for-each-ref", "--format=%(refname)", prefix).splitlines()
    return sorted(refs, key=lambda ref: (ref.startswith(f"{prefix}heads/"), ref))


def copy_refs(repo: Path, of: str, to: str) -> None:
    """Give the kept trees of a run to another one, too: either may be deleted. What went before a rewind stays its own."""
    own = tuple(f"refs/orc/{to}/{name}" for name in ("@before-", "_end", "_discard"))
    lines = git(repo, "for-each-ref", "--format=%(objectname) %(refname)", f"refs/orc/{of}/").splitlines()
    found = [(sha, name.replace(f"refs/orc/{of}/", f"refs/orc/{to}/", 1)) for sha, name in (one.split(" ", 1) for one in lines)]
    orders = (f"update {name}\0{sha}\0" for sha, name in found if not name.startswith(own))
    give_names(repo, "update-ref", "-z", "--stdin", names=orders)
