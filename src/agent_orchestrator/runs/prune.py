"""Deletes ended runs with everything of them. One plan serves the dry run and the deletion, so that both say the same."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_orchestrator.beneath import list_beneath, open_folder, remove_beneath
from agent_orchestrator.errors import GitFailed, RunBusy, Unavailable
from agent_orchestrator.git.fences import RunRemote, forget_run
from agent_orchestrator.git.ownership import list_tracked, put_back
from agent_orchestrator.git.removal import Removal, plan_removal, remove_trees
from agent_orchestrator.git.repository import host_of
from agent_orchestrator.git.snapshots import delete_refs
from agent_orchestrator.projections.inspection import remove_ours
from agent_orchestrator.runs.exclusion import show_files
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan to delete one run."""

    removal: Removal = Removal()
    kept: str | None = None
    """The reason why the run stays, with everything of it; None when it can go."""


def plan_pruning(orchestrator: Orchestrator, runs: Sequence[StoredRun]) -> list[Plan]:
    """Plan to delete the runs, one after the other, as things are now; nothing is changed."""
    plans: list[Plan] = []
    gone: list[str] = []
    for run in runs:
        if (owner := orchestrator.owner(run)) is not None:
            plans.append(Plan(kept=str(RunBusy(run=run.id, owner=owner))))
            continue
        plans.append(_plan(orchestrator, run, tuple(gone)))
        if plans[-1].kept is None:
            gone += plans[-1].removal.branches
    return plans


def _plan(orchestrator: Orchestrator, run: StoredRun, gone: tuple[str, ...] = ()) -> Plan:
    if run.summary.facts.get("logged"):
        return Plan(kept="its mode keeps every stream of it")
    try:
        removal = plan_removal(_place(orchestrator, run), run.id, gone)
    except GitFailed as error:
        return Plan(kept=str(error))
    if removal.kept:
        return Plan(removal=removal, kept="; ".join(removal.kept))
    return Plan(removal=removal, kept=_undeletable(orchestrator.settings.folder / "launches" / run.id))


def _place(orchestrator: Orchestrator, run: StoredRun) -> Path:
    """Return where a run has refs and trees here: its home, or the clone into which one of workers was brought."""
    return orchestrator.settings.home if run.context.remote else Path(run.context.home)


def _undeletable(place: Path) -> str | None:
    """Say why a folder of ours cannot be deleted: an agent may have left one in it that nobody may write to."""
    for folder, _, _ in os.walk(place):
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"{folder} cannot be deleted: permission denied"
    return None


def prune(orchestrator: Orchestrator, run: StoredRun) -> str | None:
    """Deletes everything of a run as planned; answers with why it was kept, or None. The journal goes last."""
    try:
        owner = orchestrator.own(run.id)
    except RunBusy as error:
        return str(error)
    try:
        plan = _plan(orchestrator, run)
        return plan.kept if plan.kept is not None else _delete(orchestrator, run, plan.removal)
    finally:
        owner.release()


def _delete_folder(home: Path, place: Path) -> None:
    """Deletes a folder of ours; what somebody committed in it is put back."""
    tracked = list_tracked(home, [str(place.relative_to(home))])
    _delete_tree(home, place)
    put_back(home, tracked)


def _delete_tree(root: Path, place: Path) -> None:
    """Deletes a folder below a root, which no link leads to."""
    with open_folder(root, place.parent) as parent:
        shutil.rmtree(place.name, dir_fd=parent)


def _delete_print_outs(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Delete what a run printed: its folders, and files that lie among others where they are still what it printed."""
    home, known = Path(run.context.home), orchestrator.store.printed(run.id)
    if not home.is_dir():
        return  # It was a worktree of the run's own, and is gone with all that was printed there.
    places = hooks_of(run.system).print_outs(run, known)
    for folder in (place for place in places if place.is_dir()):
        _delete_folder(home, folder)
    files = {str(place.relative_to(home)): place for place in places if place.is_file()}
    mine = [path for path, file in files.items() if remove_ours(home, file, known[path])]
    put_back(home, list_tracked(home, mine))


def _delete(orchestrator: Orchestrator, run: StoredRun, removal: Removal) -> str | None:
    home, folder = Path(run.context.home), orchestrator.settings.folder
    try:
        if run.context.remote:
            settings = orchestrator.settings
            forget_run(RunRemote(where=settings.home, url=run.context.remote, environ=settings.environ), run.id)
        place = _place(orchestrator, run)
        remove_trees(place, removal)
        delete_refs(host_of(place), f"refs/orc/{run.id}/")
    except Unavailable as error:
        return str(error)
    try:
        if (launches := folder / "launches" / run.id).exists():
            _delete_tree(folder, launches)
        _delete_print_outs(orchestrator, run)
    except OSError as error:
        return f"{error.filename} cannot be deleted: {error.strerror}"
    except GitFailed as error:
        return str(error)
    if home.is_dir():
        show_files(orchestrator, run)
    orchestrator.store.delete(run.id)
    marks = [folder / "mcp" / name for name in list_beneath(folder, folder / "mcp") if name.startswith(f"{run.id}.")]
    for file in (*marks, *(folder / "runs" / f"{run.id}.{kind}" for kind in ("log", "door", "lock"))):
        with contextlib.suppress(OSError):  # A link that somebody put on the way to it: what lies behind is not ours.
            remove_beneath(folder, file)
    return None
