"""Worktrees of runs: a branch and a folder of their own, so that agents leave the user's tree alone.

A worktree has only what is committed; untracked files that match `.worktreeinclude`, `.env` and the like, are copied into it.
Nothing is overwritten, and what was copied is left out of the commits that are made for agents.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.command import git, hold_lock, list_names
from agent_orchestrator.git.exclude import exclude, read_patterns
from agent_orchestrator.git.repository import top_level

WORKTREES = ".agents/worktrees"
PROCESSES = Path("/proc")
INCLUDED = ".worktreeinclude"
"""The file that names them, written like `.gitignore`."""


def branch_of(run: str) -> str:
    """Return the branch a run works on."""
    return f"orc/{run}"


def folder_of(home: Path, run: str, tree: Tree) -> Path:
    """Return the folder of a run's tree; `/` becomes `~`, which no branch has in its name, so that no two share a folder."""
    repo = Path(tree.repo) if tree.repo else home
    return repo / WORKTREES / f"{run}~{tree.branch.replace('/', '~')}" if tree.branch else repo


def open_tree(home: Path, run: str, tree: Tree) -> None:
    """Make the tree unless it is there; raises GitFailed."""
    folder = folder_of(home, run, tree)
    repo = Path(tree.repo) if tree.repo else home
    if not tree.branch:
        return
    with hold_lock(repo, "worktrees"):
        if not (folder / ".git").exists():
            exclude(repo, (f"{WORKTREES}/",))
            _add(repo, folder, tree.branch, tree.start)
        elif not _unlocked_index(folder).exists():
            git(folder, "reset", "--hard", "--quiet")  # a power cut came before the first file of it was there
        # Each time: a crash may have come between the worktree and the last of these files.
        copy_included(repo, folder)


def _unlocked_index(folder: Path) -> Path:
    """Return a worktree's index, after removing the lock of a git that was killed with its agent: it would stop any other git.

    A git that lives stands in the tree whose index it locks; while anybody does, the lock is left alone.
    """
    index = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    lock = index.with_name("index.lock")
    with contextlib.suppress(FileNotFoundError):
        found = lock.stat().st_ino
        if not _is_entered(folder.resolve()) and lock.stat().st_ino == found:
            lock.unlink()
    return index


def _is_entered(folder: Path) -> bool:
    """Return True if any process stands in the folder or below it, or if that cannot be seen."""
    processes = list(PROCESSES.glob("[0-9]*"))
    for process in processes:
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if (process / "cwd").readlink().is_relative_to(folder):
                return True
    return not processes


def merge_folder(repo: Path, run: str, into: str) -> Path:
    """Return the folder in which a run checks its merges into a branch; `~~` keeps it apart from the worktree of any branch."""
    return repo / WORKTREES / f"{run}~~{into.replace('/', '~')}"


def checkout_detached(repo: Path, folder: Path, commit: str) -> None:
    """Make the folder a worktree of a commit, whatever an earlier check left in it; ignored files stay, for speed."""
    with hold_lock(repo, "worktrees"):
        if not (folder / ".git").exists():
            exclude(repo, (f"{WORKTREES}/",))
            git(repo, "worktree", "prune")
            git(repo, "worktree", "add", "--detach", str(folder), commit)
        else:
            _unlocked_index(folder)
            git(folder, "checkout", "--quiet", "--force", "--detach", commit)
            git(folder, "clean", "--quiet", "-ffd")
        copy_included(repo, folder)


def add_worktree(home: Path, run: str) -> Path:
    """Make the run's branch and worktree from the current commit, unless they are there already."""
    if top_level(home) is None:
        raise UsageError(detail=f"--git-worktree needs a git repository, and {home} is none; run `git init` and commit first.")
    folder = home / WORKTREES / run
    if (folder / ".git").exists():
        return folder
    try:
        git(home, "rev-parse", "--verify", "HEAD")
    except GitFailed:
        raise UsageError(detail=f"--git-worktree needs a commit to start from, and {home} has none; commit first.") from None
    with hold_lock(home, "worktrees"):
        exclude(home, (f"{WORKTREES}/",))
        _add(home, folder, branch_of(run))
    return folder


def _add(repo: Path, folder: Path, branch: str, start: str = "") -> None:
    if folder.is_dir() and any(folder.iterdir()):
        detail = f"{folder} is no worktree any more, its .git is gone: move the folder away, the branch {branch} is kept"
        raise GitFailed(command="worktree add", where=repo, detail=detail)
    git(repo, "worktree", "prune")  # a folder that somebody deleted still holds its branch
    if git(repo, "branch", "--list", branch):
        git(repo, "worktree", "add", str(folder), branch)
    else:
        git(repo, "worktree", "add", "-b", branch, str(folder), *([start] if start else []))


def copy_included(repo: Path, folder: Path) -> None:
    """Copy included files that are missing; links are copied as links. Raises GitFailed."""
    for name in list_included(repo, repo):
        source, target = repo / name, folder / name
        if target.exists() or target.is_symlink():
            continue
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
