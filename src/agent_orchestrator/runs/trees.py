"""Working trees and the runs in them: two runs in one tree would undo, commit and judge each other's work.

A tree belongs to the unfinished run that works in it, driven now or not: what a paused run left there is half done.
`--shared-tree` is for those who mean it; it is kept with the run, so that going on needs no flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.core.finish import Finish
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.repository import host_of, is_worktree_place, top_level
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.git.worktree import add_worktree, branch_in, is_filled
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.work import is_apart
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems import about

MIX = "give --shared-tree to let their work mix"


@contextmanager
def entering(orchestrator: Orchestrator, system: str, places: set[str], *, run: str, shared: bool) -> Iterator[tuple[str, ...]]:
    """Looks and creates under one lock; raises Refused where an unfinished run has one of the places.

    Where it is meant to be shared, the notes say with whom.
    """
    with alone(orchestrator.settings.folder, "trees"):
        yield _look(orchestrator, system, places, run, shared=shared, busy_only=False)


def enter_again(orchestrator: Orchestrator, run: StoredRun, *, shared: bool = False) -> tuple[str, ...]:
    """The same for a run that goes on: one that only paused stands in nobody's way, whoever is at work does.

    A run that was started to share its tree, or is asked to now, is let in; so is one beside such a run.
    """
    with alone(orchestrator.settings.folder, "trees"):
        shared = shared or run.context.shared_tree
        places = hooks_of(run.system).places(orchestrator, run)
        return _look(orchestrator, run.system, places, run.id, shared=shared, busy_only=not run.summary.ended)


def restore_tree(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Make the worktree of a run that goes on again where it is gone, as after a merge; raises Refused where it was discarded.

    One that was only begun when its process was killed, before anything worked in it, gets its files.
    """
    folder, home = Path(run.context.workdir), Path(run.context.home)
    if is_worktree_place(home) and not home.is_dir():
        kept = orchestrator.fold(run).state.doing.kept.get(("", ""))
        way = f"; make it again: git -C {host_of(home)} worktree add {home} {kept.branch}" if kept is not None else ""
        raise Refused(why=f"The worktree of run {run.id}, {home}, is gone{way}")
    if not is_apart(run) or is_filled(folder) or top_level(home) is None:
        return
    doing = orchestrator.fold(run).state.doing
    if folder.is_dir() and ("", "") in doing.kept:
        return
    branch = branch_in(folder)
    finish: Finish = doing.finish
    ref = finish.discarded.get(branch)
    if ref is not None and find_commit(home, f"refs/heads/{branch}") is None:
        raise Refused(why=f"The work of run {run.id} was discarded; bring it back first: git branch {branch} {ref}")
    add_worktree(home, folder.name)


def _look(
    orchestrator: Orchestrator, system: str, places: set[str], run: str, *, shared: bool, busy_only: bool
) -> tuple[str, ...]:
    notes = []
    for other in orchestrator.runs(Which(ended=False)):
        if other.id == run or other.id != other.context.run:
            continue
        if system == other.system and about(system).shares_tree:
            continue
        common = sorted(places & hooks_of(other.system).places(orchestrator, other))
        if not common or (busy_only and (other.context.shared_tree or not _is_busy(orchestrator, other))):
            continue
        does = "works" if _is_busy(orchestrator, other) else "has unfinished work"
        said = f"run {other.id} ({other.system}, {other.summary.status}) {does} in the same tree ({common[0]})"
        if not shared:
            raise Refused(why=f"{said[0].upper()}{said[1:]}; {_ways(orchestrator, system, other, again=busy_only)}.")
        notes.append(f"{said}: their work mixes.")
    return tuple(notes)


def _is_busy(orchestrator: Orchestrator, run: StoredRun) -> bool:
    """Tell whether somebody drives the run, or an agent of it lives on."""
    return orchestrator.owner(run) is not None or bool(orchestrator.launches().living(run.id))


def _ways(orchestrator: Orchestrator, system: str, other: StoredRun, *, again: bool) -> str:
    driven = orchestrator.owner(other) is not None
    first = f"wait for it, or end it with `orc abort {other.id}`"
    if not driven:
        first = f"continue it (`orc resume {other.id}`) or end it (`orc abort {other.id}`)"
    apart = [about(system).own_tree] if about(system).own_tree and not again else []
    return "; ".join([first, *apart, f"or {MIX}"])
