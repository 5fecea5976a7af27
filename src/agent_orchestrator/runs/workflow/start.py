"""Starts runs of workflows: a new one, a fresh one under a used id, or an earlier one again from a step.

A run exists, durably and with its print-outs' place, before anything of it happens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import InvalidDocument, Refused, RunExists
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.git.snapshots import begin_history
from agent_orchestrator.git.worktree import add_worktree
from agent_orchestrator.runs.imports import TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.names import keep_as, new_run_id
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.runs.start import NOTHING_SPECIAL, Start, Started, create_owned
from agent_orchestrator.runs.trees import entering
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.workflow.effects import run_directory
from agent_orchestrator.systems.workflow.imports import ImportedWorkflow, import_state
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW


def start_workflow(orchestrator: Orchestrator, spec: WorkflowSpec, start: Start = NOTHING_SPECIAL) -> Started:
    """Create a run; raises RunExists for an id that is in use, and Refused for a working tree that is."""
    run = checked_id(start.run_id, "--run-id") if start.run_id is not None else new_run_id(orchestrator)
    if start.run_id is not None:
        if not start.remote:  # The home of a queued run is new, so that nothing in it says what its id was used for.
            _make_room(orchestrator, run)
        if (known := orchestrator.store.run(run)) is not None:
            raise RunExists(run=run, status=known.summary.status)
    home = orchestrator.settings.home
    places = set() if start.worktree else {checkout_of(str(home))}
    begun = ("the repository had no commit: an empty one was made to start from.",)
    new = begun if start.worktree and begin_history(home, orchestrator.clock.now_us()) else ()
    with entering(orchestrator, WORKFLOW.name, places, run=run, shared=start.shared) as notes:
        tree = add_worktree(home, run, start.worktree_branch, start.worktree_ref) if start.worktree else None
        context = start.make_context(orchestrator, run, tree)
        started = create_owned(orchestrator, WORKFLOW, spec, spec.name, context, start.budget)
    return msgspec.structs.replace(started, notes=(*new, *notes))


def _make_room(orchestrator: Orchestrator, run: str) -> None:
    """An id is used again with nothing of its past: a journal whose directory a person deleted is kept under another id.

    So are launches whose journal is lost: a new run counts from 1 again, and would take their ends for its own.
    """
    if not _is_in_the_way(orchestrator, run):
        return
    owner = orchestrator.own(run)
    try:
        if _is_in_the_way(orchestrator, run):
            keep_as(orchestrator, run)
    finally:
        owner.release()


def _is_in_the_way(orchestrator: Orchestrator, run: str) -> bool:
    """Tell whether something of an earlier run is left that no longer is one; a run with its directory is one."""
    if orchestrator.known(run) is not None:
        return not (orchestrator.settings.home / run_directory(run)).exists()
    return (orchestrator.settings.folder / "launches" / run).exists()


def find_earlier(orchestrator: Orchestrator, spec: WorkflowSpec, run_id: str | None) -> StoredRun:
    """The run that `--start-at-step` means: the one named, or the newest of this workflow; imported if need be."""
    found = _earlier(orchestrator, spec, run_id)
    return found if isinstance(found, StoredRun) else _import(orchestrator, spec, found)


def agents_of_earlier(orchestrator: Orchestrator, spec: WorkflowSpec, run_id: str | None) -> dict[str, AgentChoice]:
    """Return who performs what in the run that `--start-at-step` means; a state file without a journal does not say."""
    found = _earlier(orchestrator, spec, run_id)
    if not isinstance(found, StoredRun) or found.system != WORKFLOW.name:
        return {}
    kept: dict[str, AgentChoice] = orchestrator.fold(found).state.spec.agents
    return kept


def _earlier(orchestrator: Orchestrator, spec: WorkflowSpec, run_id: str | None) -> StoredRun | tuple[Path, dict[str, Any]]:
    """The run, or the state file of one that has no journal here."""
    if run_id is not None:
        if not orchestrator.runs(Which(begins=run_id, most=1)) and (
            found := _state_file(orchestrator, checked_id(run_id, "--run-id"))
        ):
            return found
        return orchestrator.find(run_id)
    journaled = [run for run in orchestrator.runs(Which(name=spec.name)) if "~" not in run.id]
    foreign = [found for found in _foreign(orchestrator) if found[1].get("workflow_name") == spec.name]
    newest = max(foreign, key=lambda found: found[0].stat().st_mtime_ns, default=None)
    if newest is not None and (not journaled or newest[0].stat().st_mtime_ns // 1000 > journaled[0].updated_us):
        return newest
    if not journaled:
        raise Refused(
            why=f"There is no earlier run of workflow {spec.name!r} in {orchestrator.settings.home} to start at a step of."
        )
    return journaled[0]


def _foreign(orchestrator: Orchestrator) -> list[tuple[Path, dict[str, Any]]]:
    """State files of runs that have no journal here."""
    folder = orchestrator.settings.home / run_directory("x").rpartition("/")[0]
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    found = (_state_file(orchestrator, name) for name in names if orchestrator.known(name) is None)
    return [one for one in found if one is not None]


def _state_file(orchestrator: Orchestrator, run: str) -> tuple[Path, dict[str, Any]] | None:
    path = orchestrator.settings.home / run_directory(run) / "run_state.json"
    return (path, read_object(path)) if path.exists() else None


def _import(orchestrator: Orchestrator, spec: WorkflowSpec, found: tuple[Path, dict[str, Any]]) -> StoredRun:
    path, document = found
    faults = WORKFLOW.faults(str(path), document)
    if faults:
        raise InvalidDocument(path=path, what="state file", detail="; ".join(faults[:5]))
    run = checked_id(path.parent.name, "The run directory's name")
    return _create_imported(orchestrator, spec, run, import_state(document, spec, str(path), run))


def import_workflow(orchestrator: Orchestrator, spec: WorkflowSpec, path: Path, document: dict[str, Any]) -> TakenOver:
    """A run made of a run_state.json, sloppy ones included, and the account of it; raises RunExists when it has a journal."""
    imported = import_state(document, spec, str(path), path.absolute().parent.name)
    if (known := orchestrator.store.run(imported.run)) is not None:
        raise RunExists(run=known.id, status=known.summary.status)
    run = _create_imported(orchestrator, spec, imported.run, imported)
    mine = orchestrator.settings.home / run_directory(run.id) / "run_state.json"
    owner = orchestrator.own(run.id)
    try:
        if mine.exists():
            mine.rename(mine.with_name("run_state.json.imported"))
        orchestrator.settle(run)
    finally:
        owner.release()
    return TakenOver.told((orchestrator.find(run.id),), imported.account)


def _create_imported(orchestrator: Orchestrator, spec: WorkflowSpec, run: str, imported: ImportedWorkflow) -> StoredRun:
    _make_room(orchestrator, run)
    home = str(orchestrator.settings.home)
    created_us = orchestrator.clock.now_us() if imported.created_us is None else imported.created_us
    context = Context(run=RunId(run), home=home, workdir=home, created_us=created_us)
    return orchestrator.create(WORKFLOW, spec, spec.name, context, Beginning(facts=imported.facts))
