"""A work of a run: what it made, where that lies, and what it began at, as the hooks of its system tell it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.git.repository import WORKTREES, checkout_of, is_worktree_place
from agent_orchestrator.git.worktree import branch_in

if TYPE_CHECKING:
    from agent_orchestrator.store.port import StoredRun


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work of a run."""

    unit: str = ""
    """The unit whose work it is; '' for the run as a whole."""
    title: str = ""
    """The summary of what was done, one line; '' for the run's name."""
    repo: str
    folder: str
    """The files: a worktree, or a checkout of the user's; '' where it is only in git."""
    branch: str = ""
    """'' where the work lies in the checkout itself."""
    tip: str = ""
    """The commit that a branch which is made only when somebody wants it is put at."""
    into: str = ""
    """The branch that it was made for; '' for the one that is checked out in the repository."""
    begin: str = ""
    """The commit or ref that it began at; '' for the point where the branch left its target."""
    end: str = ""
    """The commit or ref with its last state, where that is no branch."""
    check: str | None = None
    """The command that showed that it is good."""
    unready: str = ""
    """The reason not to merge it yet."""
    landed: str = ""
    """The commit that brought it into its target, where the run did that itself."""
    needed: bool = False
    """True while a unit that is not over begins with it."""
    aside: bool = False
    """True for one that is meant only where it is named."""

    @property
    def apart(self) -> bool:
        """True where its files are in a worktree that was made for it."""
        return self.folder not in ("", self.repo) and is_worktree_place(Path(self.folder))


def is_apart(run: StoredRun) -> bool:
    """Tell whether the run has a worktree of its own."""
    return Path(run.context.workdir).parent == Path(run.context.home) / WORKTREES


def own_work(run: StoredRun, *, check: str | None = None) -> Work:
    """Return the work of a run that works in one tree: its own worktree, or the user's checkout."""
    folder = Path(run.context.workdir)
    unready = "" if run.summary.ended else f"the run has not ended ({run.summary.status})"
    if is_apart(run):
        # A loop that goes on with another's work has that one's worktree, and so its branch.
        branch = branch_in(folder)
        return Work(repo=run.context.home, folder=str(folder), branch=branch, check=check, unready=unready)
    return msgspec.structs.replace(in_place(run, str(folder)), check=check)


def in_place(run: StoredRun, folder: str, unit: str = "") -> Work:
    """Return work that lies in a checkout of the user's."""
    place = checkout_of(folder)
    end = end_ref(run.id) if run.summary.ended else ""
    return Work(unit=unit, repo=place, folder=place, begin=start_ref(run.id), end=end)


def all_of(commands: Iterable[str | None]) -> str | None:
    """Return one command that passes where all of them do; None where there are none."""
    each = [command for command in commands if command]
    return " &&\n".join(f"( {command}\n)" for command in each) if len(each) > 1 else (each[0] if each else None)


def start_ref(run: str) -> str:
    """Return the ref of the tree that a run found; no unit has a name that begins with `_`."""
    return f"refs/orc/{run}/_start"


def end_ref(run: str) -> str:
    """Return the ref of the tree that a run left."""
    return f"refs/orc/{run}/_end"
