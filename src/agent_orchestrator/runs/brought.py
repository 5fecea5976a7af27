"""Runs that workers drive, brought into a clone: what their remote has is fetched, and from then on they are like any other here.

The facts of such a run have the path of its home on the workers' hosts. Here its home is the clone, so that it is looked at,
merged, published and discarded by the code of every run. Nothing of it is driven here but that, and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.core.inputs import Land, Posted
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.brought import Brought, branch_tip, fetch_run, find_remote, withdraw_result
from agent_orchestrator.git.fences import RunRemote
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.remotes import hide_credentials
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.git.worktree import branch_of, folder_of
from agent_orchestrator.runs.departure import wait_until_left
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.remote import pick_remote
from agent_orchestrator.runs.work import Work
from agent_orchestrator.store.port import StoredRun

if TYPE_CHECKING:
    from agent_orchestrator.engine.engine import World
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.engine.owners import Owned
    from agent_orchestrator.runs.agent_door import AgentDoor


def bring_run(orchestrator: Orchestrator, run: StoredRun, *, ended: bool = True) -> tuple[Orchestrator, StoredRun]:
    """Return a run as this clone has it, and the orchestrator for it; a run whose home is here is returned as it is.

    Raises Refused for one of workers that has to have `ended` and has not, or that the clone's remote does not know, and
    Unavailable where the remote does not answer.
    """
    if not run.context.remote or orchestrator.has_home(run):
        return orchestrator, run
    if ended and not run.summary.ended:
        raise Refused(why=f"Run {run.id} has not ended ({run.summary.status}{_say_driver(orchestrator, run)}); {_ways(run)}.")
    wait_until_left(orchestrator, run)
    if run.summary.ended and (owner := orchestrator.owner(run)) is not None and orchestrator.owned(run.id) is None:
        raise Refused(why=f"Run {run.id} has ended, and {owner} still has it, to push or to merge its work; try again then.")
    remote = _remote_of(orchestrator, run)
    brought = fetch_run(remote, run.id)
    if not brought.start:
        where = hide_credentials(run.context.remote)
        way = f"it was pushed to {where}: add that with `git remote add NAME {where}`, then again"
        raise Refused(why=f"The remote {remote.url} of {remote.where} has nothing of run {run.id}; {way}.")
    here = BroughtRun(orchestrator, run, remote, brought)
    return here, here.find(run.id)


def _say_driver(orchestrator: Orchestrator, run: StoredRun) -> str:
    owner = orchestrator.owner(run)
    return f", driven by {owner}" if owner is not None else ""


def _ways(run: StoredRun) -> str:
    return f"`orc diff {run.id}` shows what it did so far, `orc abort {run.id}` ends it"


def _remote_of(orchestrator: Orchestrator, run: StoredRun) -> RunRemote:
    """Return the clone's own remote for the run: an address that only the store names is fetched from by workers alone."""
    settings = orchestrator.settings
    top = top_level(settings.home)
    if top is None:
        raise Refused(why=f"The work of run {run.id} is in git, and {settings.home} is no clone: give --repo with one.")
    name = find_remote(top, run.context.remote) or pick_remote(top, None)
    return RunRemote(where=top, url=name, environ=settings.environ)


class BroughtRun(Orchestrator):
    """The orchestrator of one run that was brought here, with the store and the lease of another one, which closes them."""

    prints = False

    def __init__(self, given: Orchestrator, run: StoredRun, remote: RunRemote, brought: Brought) -> None:
        super().__init__(settings=given.settings, say=given.say)
        given.lend(self)
        self._run, self._home, self._remote, self._brought = run, run.context.home, remote, brought

    def known(self, run: str) -> StoredRun | None:
        """Return a run; the one that was brought, with the clone for its home."""
        found = super().known(run)
        if found is None or found.id != self._run.id:
            return found
        home = str(self._remote.where)
        workdir = home + found.context.workdir.removeprefix(self._home)
        context = msgspec.structs.replace(found.context, home=home, workdir=workdir, remote="")
        return msgspec.structs.replace(found, context=context)

    def own(self, run: str) -> Owned:
        """Take the run up to merge or discard what it made; raises Refused while there is more to drive than that."""
        found = self.known(run)
        if found is not None and not found.summary.ended:
            raise Refused(why=f"Run {run} is driven by workers; {_ways(found)}.")
        return super().own(run)

    def world(self, run: StoredRun, door: AgentDoor | None = None) -> World:
        """Return a world without what spans runs: the runs of this home are the clone's own."""
        return msgspec.structs.replace(super().world(run, door), overviews=None)

    def send(self, run: StoredRun, directive: Posted, folded: Folded | None = None) -> int:
        """Send a directive; a merge is never left to whoever has the run: that would be a merge in his clone."""
        if isinstance(directive, Land):
            raise Refused(why=f"Run {run.id} is being merged or discarded in another clone; try again when that is over.")
        return super().send(run, directive, folded)

    def works_of(self, run: StoredRun, state: Any) -> list[Work]:
        """Return the run's works as they are here: one branch with its result, and those of units that are not part of it."""
        works = super().works_of(run, state)
        result = self._brought.result if run.summary.ended else self._find_newest(state)
        whole = next((one for one in works if not one.unit), None) or works[0] if works else None
        placed = [self._place_unit(one, result) for one in works if one.unit]
        known = result or branch_of(run.id) in state.doing.finish.discarded
        return [self._place_whole(whole, result, run), *placed] if whole is not None and known else placed

    def _find_newest(self, state: Any) -> str:
        """Return the newest tree of a run that has not ended: every one that is a fact is at the remote."""
        kept = state.doing.kept.get(("", ""))
        known = kept is not None and kept.commit and find_commit(self._remote.where, kept.commit)
        return known or self._brought.start

    def _place_whole(self, work: Work, result: str, run: StoredRun) -> Work:
        repo, branch = str(self._remote.where), branch_of(run.id)
        folder = work.folder if work.branch == branch and work.apart else str(folder_of(Path(repo), run.id, Tree(branch=branch)))
        unready = "" if run.summary.ended else f"the run has not ended ({run.summary.status})"
        return Work(
            title="" if work.unit else work.title,
            repo=repo,
            folder=folder,
            branch=branch,
            tip=result,
            into=self._find_target(work.into),
            begin=self._brought.start,
            check=work.check,
            unready=unready,
        )

    def _find_target(self, branch: str) -> str:
        """Return the branch that a work was made for, if there is one of that name here; '' for the one that is checked out."""
        return branch if branch and find_commit(self._remote.where, f"refs/heads/{branch}") is not None else ""

    def _place_unit(self, work: Work, result: str) -> Work:
        """Return the work of a unit with its branch at the remote; what the result has is meant only where it is named."""
        repo = self._remote.where
        tip = work.tip or branch_tip(repo, self._run.id, work.branch) or ""
        part = bool(work.landed) or not tip or (bool(result) and is_ancestor(repo, tip, result))
        return msgspec.structs.replace(work, tip=tip, into=self._find_target(work.into), aside=work.aside or part)

    def withdraw(self, run: StoredRun, kept: Mapping[str, str]) -> list[str]:
        """Delete the discarded branch at the remote, too, which keeps what the clone keeps; returns what had to stay."""
        found = {ref: commit for ref in kept.values() if (commit := find_commit(self._remote.where, ref)) is not None}
        why = withdraw_result(self._remote, run.id, found)
        return [why] if why is not None else []
