"""Removes worktrees and branches whose work is where it was to go: at the end of a run, and after each merge.

Only what is merged, committed and needed by nobody goes; the journal says where it went, so that `orc diff` still shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.git.cleanup import remove_branch, remove_scratch
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.runs.work import Work
from agent_orchestrator.runs.works import find_works

if TYPE_CHECKING:
    from agent_orchestrator.core.finish import Finish
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


def remove_merged(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> list[str]:
    """Remove what a run that has ended needs no more; returns what had to stay, and why. Raises GitFailed."""
    if not run.summary.ended:
        return []
    works = [one for one in find_works(orchestrator, run, folded) if one.branch]
    for repo in dict.fromkeys(one.repo for one in works):
        own = tuple(one.branch for one in works if one.repo == repo)
        remove_scratch(Path(repo), run.id, own, completed=run.summary.status == "completed")
    kept = []
    for work in works:
        into = _merged_into(work, folded)
        if into and not work.needed and _is_finished(run, work):
            why = remove_branch(Path(work.repo), work.branch, into, Path(work.folder) if work.apart else None)
            kept += [why] if why is not None else []
    return kept


def _is_finished(run: StoredRun, work: Work) -> bool:
    """Tell whether nothing goes on in it: a run that failed may be resumed in its worktree, and goes on with its branch."""
    return bool(work.unit) or run.summary.status == "completed"


def _merged_into(work: Work, folded: Folded) -> str:
    """Return the branch that has the work; '' where none was told to have it."""
    finish: Finish = folded.state.doing.finish
    held = finish.landings.get(work.unit)
    if held is not None and held.landed:
        return held.landing.into
    if work.landed and find_commit(Path(work.repo), work.landed) is not None:
        return work.into or work.landed
    return ""
