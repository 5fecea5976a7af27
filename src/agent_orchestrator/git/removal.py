"""The removal of a run's worktrees and branches: planned first, so that a dry run says what would really happen.

A run's trees go all or none: nothing is deleted while one of them has changes or commits that are nowhere else.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.git.command import git
from agent_orchestrator.git.ownership import list_copied, list_uncommitted
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.worktree import WORKTREES, branch_of

FILES_SHOWN = 5


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """A plan: what would be deleted, or the reasons not to."""

    folders: tuple[Path, ...] = ()
    """Worktrees with nothing in them that is nowhere else."""
    scratch: tuple[Path, ...] = ()
    """Worktrees in which merges were checked: nothing in them is anybody's work."""
    branches: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """The reasons to delete nothing, one for each tree or branch in the way."""


def plan_removal(home: Path, run: str, gone: tuple[str, ...] = ()) -> Removal:
    """Plan to delete a run's worktrees and branches as they are now; nothing is changed. Raises GitFailed.

    Branches that will be `gone` by then keep no commits of others.
    """
    if top_level(home) is None:
        return Removal()
    mine = [folder for folder in sorted((home / WORKTREES).glob("*")) if folder.name.partition("~")[0] == run]
    scratch = [folder for folder in mine if folder.name.startswith(f"{run}~~")]
    trees = {folder: folder.name.partition("~")[2].replace("~", "/") for folder in mine if folder not in scratch}
    branches = [branch or branch_of(run) for branch in trees.values()] or [branch_of(run)]
    found = {branch: where for branch in dict.fromkeys(branches) if (where := _checked_out(home, branch)) is not None}
    kept = [why for folder in trees if (why := _unsaved(folder)) is not None]
    if not kept:
        kept = [why for branch, where in found.items() if (why := _unmerged(home, branch, where, mine, (*found, *gone)))]
    return Removal(folders=tuple(trees), scratch=tuple(scratch), branches=tuple(found), kept=tuple(kept))


def _unsaved(folder: Path) -> str | None:
    """Say why a worktree must stay."""
    if (folder / ".git").exists():
        return _say_unsaved(folder, list_uncommitted(folder))
    if folder.is_dir() and any(folder.iterdir()):
        return f"{folder} is no worktree any more, its .git is gone, and there are files in it: move the folder away"
    return None


def _say_unsaved(folder: Path, files: list[str]) -> str | None:
    if not files:
        return None
    more = f" and {len(files) - FILES_SHOWN} more" if len(files) > FILES_SHOWN else ""
    listed = ", ".join(files[:FILES_SHOWN]) + more
    return f"{folder} has uncommitted changes ({listed}): commit or delete them there, then prune again"


def _checked_out(home: Path, branch: str) -> str | None:
    """Return the folder that a branch is checked out in, empty for none; None when there is no such branch."""
    lines = git(home, "for-each-ref", "--format=%(refname)%00%(worktreepath)", f"refs/heads/{branch}").splitlines()
    places = dict(line.split("\0", 1) for line in lines)
    return places.get(f"refs/heads/{branch}")


def _unmerged(home: Path, branch: str, where: str, mine: list[Path], going: tuple[str, ...]) -> str | None:
    """Say why a branch must stay: its commits must be on a branch that stays."""
    if where and Path(where) not in mine and Path(where).exists():
        return f"branch {branch} is checked out in {where}"
    ways = git(home, "for-each-ref", "--format=%(refname)", f"--contains=refs/heads/{branch}", "refs/heads/", "refs/remotes/")
    if set(ways.splitlines()) <= {f"refs/heads/{one}" for one in going}:
        return f"branch {branch} has commits that are not merged"
    return None


def remove_trees(home: Path, removal: Removal) -> None:
    """Delete what was planned; raises GitFailed, also where somebody changed a file since."""
    assert not removal.kept, "a plan with a reason to keep something deletes nothing"
    for folder in removal.scratch:
        git(home, "worktree", "remove", "--force", str(folder))
    for folder in removal.folders:
        if (folder / ".git").exists():
            for name in list_copied(folder):
                (folder / name).unlink()  # Git would keep the worktree for it; the repository has the same file.
            git(home, "worktree", "remove", str(folder))
    if top_level(home) is not None:
        git(home, "worktree", "prune")
    for branch in removal.branches:
        git(home, "branch", "--delete", "--force", branch)
