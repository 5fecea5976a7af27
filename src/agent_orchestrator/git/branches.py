"""Branches: which there are, which is checked out, whether this git can merge them, and those that runs make and move.

Nothing is ever lost: a branch that exists is left alone, and what a move would drop is kept under a ref first.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import GitFailed, Unavailable
from agent_orchestrator.git.merging import too_old
from agent_orchestrator.git.run import ask_git, git
from agent_orchestrator.git.snapshots import commit_of, head_of, restore


def branches_of(home: Path) -> tuple[str, ...]:
    """The local branches; none in a repository without a commit."""
    return tuple(git(home, "for-each-ref", "--format=%(refname:short)", "refs/heads/").splitlines())


def current_branch(home: Path) -> str | None:
    """The branch that is checked out, or None."""
    return ask_git(home, "symbolic-ref", "--quiet", "--short", "HEAD", answers=(0, 1))[1] or None


def refuse_elsewhere(workdir: Path, branch: str) -> None:
    """Raises Unavailable when another branch than this one is checked out."""
    found = current_branch(workdir)
    if found != branch:
        raise Unavailable(
            detail=f"The branch {branch} is not checked out in {workdir} ({found or 'no branch'} is); "
            f"go back to it first: git switch {branch}"
        )


def can_merge(home: Path) -> str | None:
    """Why branches cannot be merged here, or None when they can."""
    try:
        return too_old(git(home, "version"))
    except GitFailed as error:
        return str(error)


def switch_to_new(workdir: Path, wanted: str) -> str:
    """Makes a branch at the current commit and checks it out; one that exists keeps its name, and the new one gets a number."""
    branch, number = wanted, 1
    while commit_of(workdir, f"refs/heads/{branch}") is not None:
        number += 1
        branch = f"{wanted}-{number}"
    git(workdir, "switch", "--quiet", "--create", branch)
    return branch


def move_back(workdir: Path, scratch: Path, branch: str, commit: str, keep: str, message: str, at_us: int) -> str:
    """Moves a checked-out branch and the working tree to a commit; answers with the ref that keeps what was there."""
    refuse_elsewhere(workdir, branch)
    kept = restore(workdir, scratch, commit, keep, message, at_us)
    git(workdir, "update-ref", "-m", message, f"refs/heads/{branch}", commit, head_of(workdir) or "")
    git(workdir, "read-tree", "HEAD")
    return kept
