"""Worktrees of runs: a branch and a folder of their own, so that agents leave the user's tree alone."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.alone import alone
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.include import include
from agent_orchestrator.git.locate import top_level
from agent_orchestrator.git.run import git

WORKTREES = ".agents/worktrees"
PROCESSES = Path("/proc")


def branch_of(run: str) -> str:
    """The branch a run works on."""
    return f"orc/{run}"


def folder_of(home: Path, run: str, tree: Tree) -> Path:
    """Where a tree of a run stands; `/` becomes `~`, which no branch has in its name, so that no two share a folder."""
    repo = Path(tree.repo) if tree.repo else home
    return repo / WORKTREES / f"{run}~{tree.branch.replace('/', '~')}" if tree.branch else repo


def open_tree(home: Path, run: str, tree: Tree) -> None:
    """Makes sure that the tree is there; raises GitFailed. Whoever comes second finds it."""
    folder = folder_of(home, run, tree)
    repo = Path(tree.repo) if tree.repo else home
    if not tree.branch:
        return
    with alone(repo, "worktrees"):
        if not (folder / ".git").exists():
            exclude(repo, (f"{WORKTREES}/",))
            _add(repo, folder, tree.branch, tree.start)
        elif not _unlocked_index(folder).exists():
            git(folder, "reset", "--hard", "--quiet")  # a power cut came before the first file of it was there
        # Each time: a crash may have come between the worktree and the last of these files.
        include(repo, folder)


def _unlocked_index(folder: Path) -> Path:
    """A worktree's index, without the lock of a git that was killed with its agent: with it no other git could do anything.

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
    """Whether any process stands in the folder or below it; where that cannot be seen, it may."""
    processes = list(PROCESSES.glob("[0-9]*"))
    for process in processes:
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if (process / "cwd").readlink().is_relative_to(folder):
                return True
    return not processes


def merge_folder(repo: Path, run: str, into: str) -> Path:
    """Where a run checks what it merges into a branch; `~~` keeps it apart from the worktree of any branch."""
    return repo / WORKTREES / f"{run}~~{into.replace('/', '~')}"


def checkout_detached(repo: Path, folder: Path, commit: str) -> None:
    """Makes the folder a worktree of a commit, whatever an earlier check left in it; what git ignores stays, for speed."""
    with alone(repo, "worktrees"):
        if not (folder / ".git").exists():
            exclude(repo, (f"{WORKTREES}/",))
            git(repo, "worktree", "prune")
            git(repo, "worktree", "add", "--detach", str(folder), commit)
        else:
            _unlocked_index(folder)
            git(folder, "checkout", "--quiet", "--force", "--detach", commit)
            git(folder, "clean", "--quiet", "-ffd")
        include(repo, folder)


def add_worktree(home: Path, run: str) -> Path:
    """Makes the run's branch and worktree from the current commit; finds them again when they are there already."""
    if top_level(home) is None:
        raise UsageError(detail=f"--git-worktree needs a git repository, and {home} is none; run `git init` and commit first.")
    folder = home / WORKTREES / run
    if (folder / ".git").exists():
        return folder
    try:
        git(home, "rev-parse", "--verify", "HEAD")
    except GitFailed:
        raise UsageError(detail=f"--git-worktree needs a commit to start from, and {home} has none; commit first.") from None
    with alone(home, "worktrees"):
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
