"""Merges the works of a run: asked for as a directive, performed by whoever drives the run, else here.

What an agent left uncommitted is committed first, and what has landed is cleaned up at once. Each step finds what an earlier
process did: after a crash the same command goes on, or says that everything is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.config.defaults import load_defaults
from agent_orchestrator.core.finish import Finish, Landed
from agent_orchestrator.core.inputs import Land, MergeVerdict
from agent_orchestrator.core.queue import Landing
from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.git.branches import make_branch
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.results import commit_left
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.runs.brought import bring_run
from agent_orchestrator.runs.directives import new_id, send_and_wait
from agent_orchestrator.runs.follow import Follower, pause
from agent_orchestrator.runs.interrupted import finish_interrupted
from agent_orchestrator.runs.tidy import remove_merged
from agent_orchestrator.runs.work import Work
from agent_orchestrator.runs.works import pick_works, target_of

if TYPE_CHECKING:
    from agent_orchestrator.engine.engine import Observer
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

TITLE_CHARS = 72


class MergeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a merge, as given."""

    unit: str | None = None
    into: str | None = None
    check: str | None = None
    """None for the run's own, or else the configured one."""
    no_check: bool = False


class MergedWork(msgspec.Struct, frozen=True, kw_only=True):
    """One work, and what came of merging it."""

    work: Work
    into: str
    check: str | None
    verdict: str
    detail: str = ""
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    tail: str = ""
    before: bool = False
    """True where the target had it already."""

    @property
    def landed(self) -> bool:
        """True where the target has it."""
        return self.verdict == MergeVerdict.LANDED


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The works that were to be merged, and what a person should know besides."""

    works: tuple[MergedWork, ...]
    notes: tuple[str, ...] = ()


def merge_works(orchestrator: Orchestrator, run: StoredRun, options: MergeOptions, observer: Observer) -> MergeReport:
    """Merge what is meant of a run, and clean up; raises Refused where there is nothing to merge, or not yet."""
    orchestrator, run = bring_run(orchestrator, run)
    orchestrator.refuse_kept(run)
    run = finish_interrupted(orchestrator, run)
    folded = orchestrator.fold(run)
    works = _choose(orchestrator, run, options.unit, folded)
    default = load_defaults(orchestrator.settings).check
    wanted = [_landing(run, work, options, default) for work in works]
    asked = Land(id=new_id(), landings=tuple(wanted))
    orchestrator.sign(run, asked)  # before anything is touched: an agent that merges decides for a person
    for work in works:
        _commit(work)
    left = [one for work, one in zip(works, wanted, strict=True) if not _has_landed(work, one, folded)]
    if left or _unfinished(folded):
        _perform(orchestrator, run, msgspec.structs.replace(asked, landings=tuple(left)) if left else None, observer)
    folded = orchestrator.fold(run)
    merged = tuple(_result(work, one, folded, before=one not in left) for work, one in zip(works, wanted, strict=True))
    notes = remove_merged(orchestrator, orchestrator.find(run.id), folded)
    return MergeReport(works=merged, notes=tuple(notes))


def _choose(orchestrator: Orchestrator, run: StoredRun, unit: str | None, folded: Folded) -> list[Work]:
    """Return the works that can be merged now; raises Refused without any, and for a unit that is named and is not ready."""
    works = pick_works(orchestrator, run, unit, folded)
    on_branch = [one for one in works if one.branch]
    if not on_branch:
        where = ", ".join(dict.fromkeys(one.folder for one in works))
        way = f"commit them there (`orc diff {run.id}` shows them), or take them back with `orc discard {run.id}`"
        raise Refused(why=f"There is nothing to merge: run {run.id} made its changes in {where} itself; {way}.")
    if not run.summary.ended and orchestrator.owner(run) is None:
        ways = f"continue with `orc resume {run.id}`, or end it with `orc abort {run.id}`"
        raise Refused(why=f"Run {run.id} has not ended, and nothing is running it; {ways}, and merge then.")
    finish: Finish = folded.state.doing.finish
    gone = [one for one in on_branch if one.branch in finish.discarded and not _exists(one)]
    on_branch = [one for one in on_branch if one not in gone]
    if not on_branch:
        ways = "; ".join(f"git branch {one.branch} {finish.discarded[one.branch]}" for one in gone)
        raise Refused(why=f"The work of run {run.id} was discarded; bring it back first: {ways}")
    ready = [one for one in on_branch if not one.unready]
    if not ready:
        named = f"{on_branch[0].unit or 'its work'}: " if unit or len(on_branch) == 1 else ""
        raise Refused(why=f"Nothing of run {run.id} can be merged yet: {named}{on_branch[0].unready}.")
    return ready


def _exists(work: Work) -> bool:
    return find_commit(Path(work.repo), f"refs/heads/{work.branch}") is not None


def _landing(run: StoredRun, work: Work, options: MergeOptions, default: str | None) -> Landing:
    subject = f"Merge {work.branch}: {work.title or run.name}".partition("\n")[0][:TITLE_CHARS]
    unit = f"Orc-Unit: {work.unit}\n" if work.unit else ""
    return Landing(
        unit=work.unit,
        branch=work.branch,
        into=target_of(work, options.into),
        message=f"{subject}\n\n{unit}Orc-Run: {run.id}\n",
        repo=work.repo if work.repo != run.context.home else "",
        check=None if options.no_check else options.check or work.check or default,
    )


def _commit(work: Work) -> None:
    """Commit what an agent left, and make the branch of a work that is only a commit."""
    repo = Path(work.repo)
    if work.tip and find_commit(repo, f"refs/heads/{work.branch}") is None:
        make_branch(repo, work.branch, work.tip)
    commit_left(repo, work.branch)


def _has_landed(work: Work, one: Landing, folded: Folded) -> bool:
    """Tell whether the target has the work already, by an earlier merge of ours, by the run itself, or by hand."""
    repo = Path(work.repo)
    tip = find_commit(repo, f"refs/heads/{one.branch}")
    if tip is not None:
        return is_ancestor(repo, tip, f"refs/heads/{one.into}")
    held = _held(folded, one.unit)
    return bool(work.landed) or (held is not None and held.landed)


def _held(folded: Folded, unit: str) -> Landed | None:
    finish: Finish = folded.state.doing.finish
    return finish.landings.get(unit)


def _unfinished(folded: Folded) -> bool:
    """Tell whether an earlier process was killed while it merged."""
    finish: Finish = folded.state.doing.finish
    return bool(finish.line)


def _result(work: Work, one: Landing, folded: Folded, *, before: bool) -> MergedWork:
    held = _held(folded, one.unit)
    if _has_landed(work, one, folded):
        ours = held if held is not None and held.landed else None
        commit = ours.commit if ours is not None else work.landed or None
        into = ours.landing.into if ours is not None and before else one.into
        verdict = MergeVerdict.LANDED.value
        return MergedWork(work=work, into=into, check=one.check, verdict=verdict, commit=commit, before=before)
    if held is None or not held.verdict:
        return MergedWork(work=work, into=one.into, check=one.check, verdict="in line")
    return MergedWork(
        work=work,
        into=one.into,
        check=one.check,
        verdict=held.verdict,
        detail=held.detail,
        conflicts=held.conflicts,
        tail=held.tail,
    )


def _perform(orchestrator: Orchestrator, run: StoredRun, asked: Land | None, observer: Observer) -> None:
    """Have it done by whoever drives the run, else do it here; returns when every merge in line has an answer."""
    if orchestrator.owner(run) is None:
        try:
            owner = orchestrator.own(run.id)
        except RunBusy:
            pass
        else:
            try:
                orchestrator.drive_owned(run, observer, lambda driver: False, [asked] if asked is not None else [])
            finally:
                owner.release()
            return
    if asked is not None:
        send_and_wait(orchestrator, run, asked)
    follower = Follower(orchestrator, run)
    while follower.state.doing.finish.line and orchestrator.owner(run) is not None:
        pause()
        follower.read()
