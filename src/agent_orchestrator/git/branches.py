"""Branches: the local ones, the one that is checked out, and those that runs make and move.

Nothing is ever lost: a branch that exists is left alone, and what a move would drop is kept under a ref first.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import GitFailed, Unavailable
from agent_orchestrator.git.command import ask_git, git, hold_lock
from agent_orchestrator.git.merges import explain_too_old
from agent_orchestrator.git.snapshots import find_commit, find_head


def list_branches(home: Path) -> tuple[str, ...]:
    """Return the local branches; none in a repository without a commit."""
    return tuple(git(home, "for-each-ref", "--format=%(refname:short)", "refs/heads/").splitlines())


def find_branch(home: Path) -> str | None:
    """Return the branch that is checked out, or None."""
    return ask_git(home, "symbolic-ref", "--quiet", "--short", "HEAD", answers=(0, 1))[1] or None


def refuse_elsewhere(workdir: Path, branch: str) -> None:
    """Raise Unavailable when another branch than this one is checked out."""
    found = find_branch(workdir)
    if found != branch:
        raise Unavailable(
            detail=f"The branch {branch} is not checked out in {workdir} ({found or 'no branch'} is); "
            f"go back to it first: git switch {branch}"
        )


def find_merge_obstacle(home: Path) -> str | None:
    """Say why branches cannot be merged here; None when they can."""
    try:
        return explain_too_old(git(home, "version"))
    except GitFailed as error:
        return str(error)


def switch_to_new(workdir: Path, wanted: str) -> str:
    """Make a branch at the current commit and check it out; if it exists, the new one gets a number."""
    head = find_head(workdir)
    with hold_lock(workdir, "switching") as held:
        branch, number = wanted, 1
        while find_commit(workdir, f"refs/heads/{branch}") is not None and held.left != f"{branch} {head}".encode():
            number += 1
            branch = f"{wanted}-{number}"
        held.intend(f"{branch} {head}".encode())  # A branch that was made by a killed predecessor is found again.
        if head is not None:
            git(workdir, "update-ref", "-m", "branch: Created from HEAD", f"refs/heads/{branch}", head)
        before = find_branch(workdir) or head
        git(workdir, "symbolic-ref", "-m", f"checkout: moving from {before} to {branch}", "HEAD", f"refs/heads/{branch}")
    return branch


def make_branch(workdir: Path, branch: str, commit: str) -> None:
    """Point a branch of ours at a commit; one that is checked out somewhere is refused by git."""
    with hold_lock(workdir, "branches"):
        git(workdir, "branch", "--no-track", "--force", branch, commit)
