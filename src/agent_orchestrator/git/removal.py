"""The removal of a run's worktrees and branches: planned first, so that a dry run says what would really happen.

A run's trees go all or none: nothing is deleted while one of them has changes or commits that are nowhere else.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git, hold_lock, list_names
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.repository import WORKTREES, host_of, own_dir, top_level
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.git.worktree import branch_in, branch_of, delete_worktrees

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
    host = host_of(home)
    if top_level(host) is None:
        return Removal()
    # The home of a fork may be a worktree itself, with worktrees of its own in it: those go first.
    places = (home, host) if host != home else (home,)
    mine = [one for place in places for one in sorted((place / WORKTREES).glob("*")) if one.name.partition("~")[0] == run]
    scratch = [folder for folder in mine if folder.name.startswith(f"{run}~~")]
    trees = [folder for folder in mine if folder not in scratch]
    home = host
    branches = [branch_in(folder) for folder in trees] + _list_own(home, run)
    found = {branch: where for branch in dict.fromkeys(branches) if (where := _checked_out(home, branch)) is not None}
    kept = [why for folder in trees if (why := _unsaved(folder)) is not None]
    if not kept:
        kept = [why for branch, where in found.items() if (why := _unmerged(home, branch, where, mine, (*found, *gone)))]
    return Removal(folders=tuple(trees), scratch=tuple(scratch), branches=tuple(found), kept=tuple(kept))


def _list_own(home: Path, run: str) -> list[str]:
    """Return the branches that are named after a run: its own, and a fork's."""
    names = (f"refs/heads/{branch_of(run)}", f"refs/heads/{branch_of(run)}/")
    return [ref.removeprefix("refs/heads/") for ref in git(home, "for-each-ref", "--format=%(refname)", *names).splitlines()]


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
    home = host_of(home)
    if top_level(home) is None:
        return
    with hold_lock(home, "worktrees"):
        for folder in (*removal.scratch, *removal.folders):
            _refuse_changed(folder, scratch=folder in removal.scratch)
        delete_worktrees(home, (*removal.scratch, *removal.folders))
        for branch in removal.branches:
            if find_commit(home, f"refs/heads/{branch}") is not None:
                git(home, "branch", "--delete", "--force", branch)


def _refuse_changed(folder: Path, *, scratch: bool) -> None:
    """Raise GitFailed for a worktree with something in it that is nowhere else, or that somebody locked."""
    own = own_dir(folder) if (folder / ".git").exists() else None
    why = _unsaved(folder) if not scratch else None
    if own is not None and (own / "locked").exists():
        why = f"{folder} is locked: `git worktree unlock` it first"
    if own is not None and not scratch and (inner := _inner(folder)):
        why = f"{folder} has the repository {inner} in it: move that away"
    if why is not None:
        raise GitFailed(command="worktree remove", where=folder, detail=why)


def _inner(folder: Path) -> str | None:
    """Return a repository inside a worktree, whose files git knows nothing of."""
    entries = (line.partition("\t") for line in list_names(folder, "ls-files", "--stage", "-z"))
    return next((name for about, _, name in entries if about.startswith("160000") and (folder / name / ".git").exists()), None)
