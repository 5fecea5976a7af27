"""Worktrees of runs: a branch and a folder of their own, so that agents leave the user's tree alone.

Nothing is ever deleted that has uncommitted changes or commits nobody merged.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.locate import top_level
from agent_orchestrator.git.run import git


def branch_of(run: str) -> str:
    """The branch a run works on."""
    return f"orc/{run}"


def add_worktree(home: Path, run: str) -> Path:
    """Makes the run's branch and worktree from the current commit; finds them again when they are there already."""
    if top_level(home) is None:
        raise UsageError(detail=f"--git-worktree needs a git repository, and {home} is none; run `git init` and commit first.")
    folder = home / ".agents" / "worktrees" / run
    if (folder / ".git").exists():
        return folder
    try:
        git(home, "rev-parse", "--verify", "HEAD")
    except GitFailed:
        raise UsageError(detail=f"--git-worktree needs a commit to start from, and {home} has none; commit first.") from None
    branch = branch_of(run)
    git(home, "worktree", "prune")  # a folder that somebody deleted still holds its branch
    if git(home, "branch", "--list", branch):
        git(home, "worktree", "add", str(folder), branch)
    else:
        git(home, "worktree", "add", "-b", branch, str(folder))
    return folder


def remove_worktree(home: Path, run: str) -> str | None:
    """Removes a run's worktree, and its branch when merged; answers with why something was kept, or None."""
    folder = home / ".agents" / "worktrees" / run
    branch = branch_of(run)
    if (folder / ".git").exists():
        if git(folder, "status", "--porcelain"):
            return f"{folder} has uncommitted changes"
        git(home, "worktree", "remove", str(folder))
    git(home, "worktree", "prune")
    if not git(home, "branch", "--list", branch):
        return None
    try:
        git(home, "branch", "--delete", branch)
    except GitFailed:
        return f"branch {branch} has commits that are not merged"
    return None
