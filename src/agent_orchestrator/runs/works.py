"""The works of a run, the same for every system: found, picked, and kept as trees.

A work is on a branch, mostly with a worktree of its own, or it lies in a checkout of the user's. Which ones a run has is
told by its system's hooks; `orc diff`, `open`, `merge`, `pr` and `discard` ask here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.errors import GitFailed, Refused, Shortage, UnknownUnit
from agent_orchestrator.git.branches import find_branch, make_branch
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import find_commit, save_snapshot
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.work import Work

if TYPE_CHECKING:
    from agent_orchestrator.core.finish import Finish
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

UNITS_SHOWN = 20


def find_works(orchestrator: Orchestrator, run: StoredRun, folded: Folded | None = None) -> list[Work]:
    """Return all works of a run, the ones in git only."""
    folded = folded or orchestrator.fold(run)
    works = orchestrator.works_of(run, folded.state)
    return [one for one in works if top_level(Path(one.repo)) is not None]


def pick_works(orchestrator: Orchestrator, run: StoredRun, unit: str | None, folded: Folded | None = None) -> list[Work]:
    """Return the works that are meant: that of a unit, or all; raises Refused without any."""
    works = find_works(orchestrator, run, folded)
    if unit is not None:
        found = [one for one in works if one.unit == unit]
        if not found:
            known = [one.unit for one in works if one.unit][:UNITS_SHOWN]
            if not known:
                raise Refused(why=f"Run {run.id} has one piece of work: leave out {unit}.")
            raise UnknownUnit(run=run.id, unit=unit, known=", ".join(known))
        return found
    works = [one for one in works if not one.aside]
    if not works:
        outside = f"{run.context.workdir} is in no git repository"
        where = outside if top_level(Path(run.context.home)) is None else "it has begun none, or changed nothing"
        raise Refused(why=f"Run {run.id} has no work to show: {where}.")
    return works


def target_of(work: Work, into: str | None = None) -> str:
    """Return the branch that a work is to be merged into; raises Refused where that is not clear."""
    found = into or work.into or find_branch(Path(work.repo)) or ""
    if not found:
        raise Refused(why=f"No branch is checked out in {work.repo}: name the one to merge into with --into.")
    if found == work.branch:
        way = "switch to the branch that is to have it, or name that with --into"
        raise Refused(why=f"{work.repo} is on {found} itself, the branch with the work: {way}.")
    if find_commit(Path(work.repo), f"refs/heads/{found}") is None:
        raise Refused(why=f"There is no branch {found} in {work.repo}; name one that there is with --into.")
    return found


def make_wanted(work: Work, finish: Finish) -> None:
    """Make the branch of a work that is only a commit here, unless it is merged here or was discarded."""
    repo, held = Path(work.repo), finish.landings.get(work.unit)
    landed = held is not None and held.landed and held.commit and find_commit(repo, held.commit)
    if work.tip and not landed and work.branch not in finish.discarded and find_commit(repo, f"refs/heads/{work.branch}") is None:
        make_branch(repo, work.branch, work.tip)


def keep_tree(orchestrator: Orchestrator, run: StoredRun, ref: str, message: str, at_us: int) -> None:
    """Keep the trees of the checkouts that a run works in; where git cannot, its diff is not known, and it runs all the same."""
    scratch = orchestrator.settings.folder / "scratch" / run.id
    for place in sorted(hooks_of(run.system).places(orchestrator, run)):
        folder = Path(place)
        if top_level(folder) is not None:
            with contextlib.suppress(GitFailed, Shortage, OSError), hold_lock(folder, f"saving~{folder.name}"):
                save_snapshot(folder, scratch, ref, message, at_us)
