"""Worktrees of runs: a branch and a folder of their own, so that agents leave the user's tree alone.

A worktree has only what is committed; untracked files that match `.worktreeinclude`, `.env` and the like, are copied into it.
Nothing is overwritten, and what was copied is left out of the commits that are made for agents.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from agent_orchestrator.beneath import reach_folder
from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.command import git, hold_lock, list_names
from agent_orchestrator.git.exclude import exclude, read_patterns
from agent_orchestrator.git.leftovers import is_entered, is_left
from agent_orchestrator.git.repository import WORKTREES, common_dir, own_dir, top_level

INCLUDED = ".worktreeinclude"
"""The file that names them, written like `.gitignore`."""
GONE = ".gone~"
"""The beginning of the name that a worktree has while it is deleted."""


def branch_of(run: str) -> str:
    """Return the branch a run works on."""
    return f"orc/{run}"


def folder_of(home: Path, run: str, tree: Tree) -> Path:
    """Return the folder of a run's tree; `/` becomes `~`, which no branch has in its name, so that no two share a folder."""
    repo = Path(tree.repo) if tree.repo else home
    return repo / WORKTREES / f"{run}~{tree.branch.replace('/', '~')}" if tree.branch else repo


def reach_tree(folder: Path) -> Path:
    """Return a working tree as the path in which no link is; LinkInTheWay for one between a repository and its worktree."""
    before, inside, _ = f"{folder}/".rpartition(f"/{WORKTREES}/")
    return reach_folder(Path(before or "/") if inside else folder, folder)


def open_tree(home: Path, run: str, tree: Tree) -> None:
    """Make the tree unless it is there; raises GitFailed."""
    folder = folder_of(home, run, tree)
    repo = Path(tree.repo) if tree.repo else home
    if not tree.branch:
        return
    with hold_lock(repo, "worktrees"):
        _make(repo, folder, tree.branch, tree.start)
        # Each time: a crash may have come between the worktree and the last of these files.
        copy_included(repo, folder)


def _make(repo: Path, folder: Path, branch: str, start: str = "") -> None:
    """Make a worktree of a branch unless it is there, and finish one of which only the beginning is."""
    begin_worktree(repo, folder, branch, start)
    _fill(folder)


def begin_worktree(repo: Path, folder: Path, branch: str, start: str = "") -> None:
    """Make a worktree of a branch, still without files, unless it is there; the caller holds the lock `worktrees`."""
    if not _is_begun(repo, folder):
        exclude(repo, (f"{WORKTREES}/",))
        _refuse_files(repo, folder, f"the branch {branch} is kept")
        git(repo, "worktree", "prune")  # a folder that somebody deleted still holds its branch
        if not git(repo, "branch", "--list", branch):
            _refuse_parent(repo, branch)
            git(repo, "branch", "--no-track", branch, *([start] if start else []))
        git(repo, "worktree", "add", "--no-checkout", str(folder), branch)
    _unlock(folder)


def _refuse_parent(repo: Path, branch: str) -> None:
    """Refuse a branch below another one: git keeps them as files and folders, and one name cannot be both."""
    for parent in (str(one) for one in PurePosixPath(branch).parents if one.name):
        if git(repo, "branch", "--list", parent):
            detail = f"there is a branch named {parent}, and git cannot make {branch} beside it: git branch -m {parent} NAME"
            raise GitFailed(command="branch", where=repo, detail=detail)


def is_filled(folder: Path) -> bool:
    """Return True if a worktree got its files: its index is written after them. A power cut may have taken both."""
    own = own_dir(folder) if (folder / ".git").exists() else None
    return own is not None and (own / "index").exists()


def _fill(folder: Path) -> None:
    """Check out the files of a new worktree, or of one that had none when the power was cut."""
    if not is_filled(folder):
        git(folder, "read-tree", "--reset", "-u", "HEAD")


def delete_worktrees(repo: Path, folders: Iterable[Path]) -> None:
    """Delete worktrees with all that is in them; the caller holds the lock `worktrees`.

    Each is moved aside first, in one step: of a folder that is deleted file by file a kill leaves a ruin. What a killed
    process moved aside is deleted, too.
    """
    places = {repo / WORKTREES}
    for folder in folders:
        places.add(folder.parent)
        if folder.is_dir():
            aside = folder.with_name(f"{GONE}{folder.name}")
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
    git(repo, "worktree", "prune")
    for ruin in (one for place in places for one in place.glob(f"{GONE}*")):
        shutil.rmtree(ruin, ignore_errors=True)


def _refuse_files(repo: Path, folder: Path, kept: str) -> None:
    if folder.is_symlink() or (folder.is_dir() and any(folder.iterdir())):
        detail = f"{folder} is no worktree any more, its .git is gone: move the folder away, {kept}"
        raise GitFailed(command="worktree add", where=repo, detail=detail)


def _is_begun(repo: Path, folder: Path) -> bool:
    """Return True if a worktree is made, though files may be missing; what is left of a making that was killed is removed.

    Git locks what it is making with the word `initializing`, and puts nothing but `.git` into the folder before it is done.
    """
    common = common_dir(top_level(repo) or repo)
    assert common is not None, "only a repository has worktrees"
    dot = folder / ".git"
    halves = [admin for admin in (common / "worktrees").glob("*") if _is_half_made(admin, dot)]
    for admin in halves:
        shutil.rmtree(admin)
    own = own_dir(folder) if dot.is_file() and not dot.is_symlink() else None
    if dot.is_file() and (halves or own is None or not own.exists()) and list(folder.iterdir()) == [dot]:
        dot.unlink()
        folder.rmdir()
    return os.path.lexists(dot)


def _is_half_made(admin: Path, dot: Path) -> bool:
    """Return True if git was killed while it made the worktree of this folder, whose lock of it we hold."""
    try:
        place = (admin / "gitdir").read_text("utf-8").strip()
    except OSError:
        place = ""
    name = re.escape(re.sub(r"[^\w.@+-]", "-", dot.parent.name))
    mine = Path(place) == dot if place else re.fullmatch(rf"{name}\d*", admin.name) is not None
    try:
        return mine and (admin / "locked").read_text("utf-8").strip() in ("", "initializing")
    except OSError:
        return mine and not (admin / "HEAD").exists()


def _unlock(folder: Path) -> None:
    """Remove the locks of a git that was killed with its agent in a worktree: they would stop any other git.

    A git that lives stands in the tree that it works on; while anybody does, its locks are left alone.
    """
    own, common = own_dir(folder), common_dir(folder)
    if own is None or common is None:
        return
    branch = find_branch_of(own)
    locks = [*own.glob("*.lock"), *([common / f"{branch}.lock"] if branch else [])]
    found = {lock: lock.stat().st_ino for lock in locks if lock.exists()}
    if found and not is_entered(folder.resolve()):
        for lock, inode in found.items():
            with contextlib.suppress(FileNotFoundError):
                if lock.stat().st_ino == inode and is_left(lock, common, 0):
                    lock.unlink()


def find_branch_of(own: Path) -> str | None:
    """Return the full name of the branch that a git directory is on, by reading its file."""
    try:
        kind, _, name = (own / "HEAD").read_text("utf-8").strip().partition(" ")
    except OSError:
        return None
    return name if kind == "ref:" else None


def merge_folder(repo: Path, run: str, into: str) -> Path:
    """Return the folder in which a run checks its merges into a branch; `~~` keeps it apart from the worktree of any branch."""
    return repo / WORKTREES / f"{run}~~{into.replace('/', '~')}"


def checkout_detached(repo: Path, folder: Path, commit: str) -> None:
    """Make the folder a worktree of a commit, whatever an earlier check left in it; ignored files stay, for speed."""
    with hold_lock(repo, "worktrees"):
        if not _is_begun(repo, folder):
            exclude(repo, (f"{WORKTREES}/",))
            _refuse_files(repo, folder, "nothing in it is anybody's work")
            git(repo, "worktree", "prune")
            git(repo, "worktree", "add", "--no-checkout", "--detach", str(folder), commit)
        _unlock(folder)
        _fill(folder)
        git(folder, "checkout", "--quiet", "--force", "--detach", commit)
        git(folder, "clean", "--quiet", "-ffd")
        copy_included(repo, folder)


def branch_in(folder: Path) -> str:
    """Return the branch that a run's own worktree was made for: the one in its name, else the run's."""
    run, apart, branch = folder.name.partition("~")
    return branch.replace("~", "/") if apart else branch_of(run)


def add_worktree(home: Path, run: str, branch: str = "", ref: str = "") -> Path:
    """Make the run's branch and worktree from a commit, the current one without it, unless they are there already.

    A branch that is given must be new: it is the run's, and goes with it. Given the name of a run's folder instead of the
    run, the tree is made again as it was.
    """
    if top_level(home) is None:
        raise UsageError(detail=f"A worktree needs a git repository, and {home} is none; run `git init` and commit first.")
    folder = folder_of(home, run, Tree(branch=branch)) if branch else home / WORKTREES / run
    if ref and not _exists(home, ref):
        raise UsageError(detail=f"--git-worktree-ref {ref}: {home} has no such commit, branch or tag.")
    if not _exists(home, "HEAD"):
        raise UsageError(detail=f"A worktree needs a commit to start from, and {home} has none; commit first.")
    with hold_lock(home, "worktrees") as held:
        if branch and not (folder / ".git").exists() and held.left != os.fsencode(folder):
            _check_new(home, branch)
            held.intend(os.fsencode(folder))  # A branch that a killed predecessor made for it is not somebody else's.
        _make(home, folder, branch_in(folder), ref)
    return folder


def _exists(home: Path, name: str) -> bool:
    try:
        return bool(git(home, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"))
    except GitFailed:
        return False


def _check_new(home: Path, branch: str) -> None:
    try:
        git(home, "check-ref-format", "--branch", branch)
    except GitFailed:
        raise UsageError(detail=f"--git-worktree-branch {branch}: this cannot be the name of a branch.") from None
    if _exists(home, f"refs/heads/{branch}"):
        detail = f"--git-worktree-branch {branch}: {home} has this branch already; name another, or begin at it with"
        raise UsageError(detail=f"{detail} --git-worktree-ref {branch}.")


def copy_included(repo: Path, folder: Path) -> None:
    """Copy included files that are missing; links are copied as links. Raises GitFailed."""
    for name in list_included(repo, repo):
        source, target = repo / name, folder / name
        if target.exists() or target.is_symlink() or not target.parent.resolve().is_relative_to(folder.resolve()):
            continue  # It is there, or a link would lead out of the worktree.
        # A file that went away since it was listed is simply not there.
        with contextlib.suppress(FileNotFoundError):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def list_included(repo: Path, folder: Path) -> list[str]:
    """Return the untracked files of a worktree that match the repository's `.worktreeinclude`."""
    patterns = repo / INCLUDED
    if not patterns.is_file():
        return []
    listed = list_names(folder, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
    ours = read_patterns(folder)
    # What is ours is never copied, whatever a pattern says: a worktree inside a worktree has no end.
    return [name for name in listed if not name.endswith("/") and not ours.match(name)]
