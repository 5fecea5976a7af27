"""What branches a repository has, which one is checked out, and whether this git can merge them."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.merging import too_old
from agent_orchestrator.git.run import ask_git, git


def branches_of(home: Path) -> tuple[str, ...]:
    """The local branches; none in a repository without a commit."""
    return tuple(git(home, "for-each-ref", "--format=%(refname:short)", "refs/heads/").splitlines())


def current_branch(home: Path) -> str | None:
    """The branch that is checked out, or None."""
    return ask_git(home, "symbolic-ref", "--quiet", "--short", "HEAD", answers=(0, 1))[1] or None


def can_merge(home: Path) -> str | None:
    """Why branches cannot be merged here, or None when they can."""
    try:
        return too_old(git(home, "version"))
    except GitFailed as error:
        return str(error)
