"""Discards the work of a run: everything of it is kept under refs first, then its worktrees and branches go.

In a checkout of the user's it is taken back only where nothing but the run changed anything: the tree must still be the one
that the run left. Between the journaled decision and the last removal a ref marks that it is under way: whoever comes after
a crash finds it and goes on. A crash before that has changed nothing but refs of ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.finish import Finish
from agent_orchestrator.core.inputs import Discard
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.cleanup import keep_branch, remove_kept, remove_scratch, take_back
from agent_orchestrator.git.diffs import TreePair, list_changed
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.snapshots import Backup, find_commit, find_head, point_ref
from agent_orchestrator.runs.brought import bring_run
from agent_orchestrator.runs.changes import tree_now
from agent_orchestrator.runs.departure import wait_until_left
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.work import Work
from agent_orchestrator.runs.works import find_works, make_wanted

if TYPE_CHECKING:
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

PATHS_SHOWN = 5


class DiscardReport(msgspec.Struct, frozen=True, kw_only=True):
    """The refs that keep what was discarded, by branch or folder, how to bring it back, and what had to stay."""

    kept: dict[str, str]
    ways_back: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def discard_work(orchestrator: Orchestrator, run: StoredRun) -> DiscardReport:
    """Discard all work of an ended run that is not merged; raises Refused where that would lose something of somebody else's."""
    orchestrator, run = bring_run(orchestrator, run)
    orchestrator.refuse_kept(run)
    if not run.summary.ended:
        raise Refused(why=f"Run {run.id} has not ended ({run.summary.status}); end it first: orc abort {run.id}")
    asked = orchestrator.sign(run, Discard(id=new_id(), kept={}))
    wait_until_left(orchestrator, run)
    owner = orchestrator.own(run.id)
    try:
        folded = orchestrator.fold(run)
        works = [one for one in find_works(orchestrator, run, folded) if not one.aside]
        if not is_under_way(run, works):
            for one in works:
                make_wanted(one, folded.state.doing.finish)
            works = _present(run, works, folded)
            kept = {one.branch or one.folder: ref for one in works if (ref := _keep(orchestrator, run, one, folded)) is not None}
            orchestrator.send(run, msgspec.structs.replace(asked, kept=kept))
            orchestrator.settle(run)
            for repo, ref in {one.repo: kept[one.branch or one.folder] for one in works}.items():
                point_ref(Path(repo), _mark(run), ref)
        return finish_discard(orchestrator, run)
    finally:
        owner.release()


def is_under_way(run: StoredRun, works: list[Work]) -> bool:
    """Tell whether a process was killed while it discarded."""
    return any(find_commit(Path(repo), _mark(run)) is not None for repo in {one.repo for one in works})


def _mark(run: StoredRun) -> str:
    return f"refs/orc/{run.id}/_discarding"


def _present(run: StoredRun, works: list[Work], folded: Folded) -> list[Work]:
    """Return the works that are there to be discarded; raises Refused without any."""
    finish: Finish = folded.state.doing.finish
    there = [one for one in works if not one.branch or find_commit(Path(one.repo), f"refs/heads/{one.branch}") is not None]
    left = [one for one in there if not _is_merged(one)]
    if left:
        return list({one.branch or one.folder: one for one in left}.values())
    landed = [held for held in finish.landings.values() if held.landed and held.commit]
    if landed:
        way = f"; `git revert -m 1 {landed[-1].commit[:12] if landed[-1].commit else ''}` undoes the merge"
        raise Refused(why=f"The work of run {run.id} was merged into {landed[-1].landing.into}{way}.")
    said = "was discarded already" if finish.discarded else "is merged or gone"
    raise Refused(why=f"There is nothing to discard: the work of run {run.id} {said}.")


def _is_merged(work: Work) -> bool:
    if not work.branch:
        return False
    repo, target = Path(work.repo), work.into or "HEAD"
    return bool(work.landed) and find_commit(repo, target) is not None and is_ancestor(repo, f"refs/heads/{work.branch}", target)


def _keep(orchestrator: Orchestrator, run: StoredRun, work: Work, folded: Folded) -> str | None:
    """Keep all of a work under a ref."""
    repo, scratch = Path(work.repo), orchestrator.settings.folder / "scratch" / run.id
    name = work.branch or "_checkout"
    backup = Backup(f"refs/orc/{run.id}/_discarded/{name}", f"{run.id}: discarded {work.branch or work.folder}", folded.at_us)
    if work.branch:
        return keep_branch(repo, work.branch, Path(work.folder) if work.apart else None, scratch, backup)
    _refuse_changed(orchestrator, run, work)
    point_ref(repo, backup.ref, work.end)
    return backup.ref


def _refuse_changed(orchestrator: Orchestrator, run: StoredRun, work: Work) -> None:
    """Raise where somebody changed a checkout of the user's since the run ended, or where that cannot be told."""
    repo = Path(work.repo)
    start, end = find_commit(repo, work.begin), find_commit(repo, work.end) if work.end else None
    if start is None or end is None:
        why = f"the tree that it {'found' if start is None else 'left'} was not kept"
        raise Refused(why=f"The changes of run {run.id} in {work.folder} cannot be told from others: {why}. Nothing was touched.")
    if find_head(repo) != find_commit(repo, f"{end}^1"):
        way = f"`orc diff {run.id}` shows what it did"
        raise Refused(why=f"{work.folder} has other commits than when run {run.id} ended, perhaps with its work; {way}.")
    changed = list_changed(TreePair(repo, end, tree_now(orchestrator, repo)))
    if changed:
        named = ", ".join(one.path for one in changed[:PATHS_SHOWN]) + (" and more" if len(changed) > PATHS_SHOWN else "")
        why = f"{named} changed in {work.folder} since run {run.id} ended, and that is not the run's"
        raise Refused(why=f"{why}; commit or stash it, then discard. Nothing was touched.")


def finish_discard(orchestrator: Orchestrator, run: StoredRun) -> DiscardReport:
    """Remove what is kept; also what a process that was killed did not get to."""
    folded = orchestrator.fold(run)
    finish: Finish = folded.state.doing.finish
    works = {one.branch or one.folder: one for one in find_works(orchestrator, run, folded) if not one.aside}
    scratch = orchestrator.settings.folder / "scratch" / run.id
    notes, ways = [], []
    for repo in dict.fromkeys(one.repo for one in works.values()):
        own = tuple(one.branch for one in works.values() if one.repo == repo)
        remove_scratch(Path(repo), run.id, own, completed=True)
    for name, ref in finish.discarded.items():
        work = works.get(name)
        if work is None or find_commit(Path(work.repo), _mark(run)) is None:
            continue
        where = f"git -C {work.repo}" if Path(work.repo) != Path(run.context.home) else "git"
        if work.branch:
            why = remove_kept(Path(work.repo), work.branch, Path(work.folder) if work.apart else None)
            notes += [why] if why is not None else []
            ways.append(f"{where} branch {work.branch} {ref}")
        else:
            backup = Backup(f"{ref}-before", f"{run.id}: before its changes were taken back", folded.at_us)
            take_back(Path(work.repo), scratch, work.begin, backup)
            ways.append(f"{where} restore --source={ref} --worktree -- :/")
    notes += orchestrator.withdraw(run, finish.discarded)
    for repo in dict.fromkeys(one.repo for one in works.values()):
        point_ref(Path(repo), _mark(run), None)
    return DiscardReport(kept=dict(finish.discarded), ways_back=tuple(ways), notes=tuple(notes))
