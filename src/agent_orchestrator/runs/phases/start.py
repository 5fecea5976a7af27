"""Starts and finds phased runs: what `orc phases` talks to.

The state file belongs to one run at a time: an unfinished one is in the way of another, an ended one is archived.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.files import Patterns
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.inputs import Instruct
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.errors import InvalidDocument, Refused, Unavailable, UsageError
from agent_orchestrator.git.branches import find_branch, refuse_elsewhere, switch_to_new
from agent_orchestrator.git.ownership import list_ours, list_uncommitted
from agent_orchestrator.git.repository import checkout_of, top_level
from agent_orchestrator.git.snapshots import find_head
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.projections.writer import make_folder
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.exclusion import hide_files
from agent_orchestrator.runs.imports import TakenOver
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.runs.phases.publication import choose_publication
from agent_orchestrator.runs.start import NOTHING_SPECIAL, Start, Started, create_owned
from agent_orchestrator.runs.trees import entering
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.phases.decide.edits import OLD_FORMAT, is_old_format
from agent_orchestrator.systems.phases.documents import FOLDER, STATE_FILE
from agent_orchestrator.systems.phases.imports import import_state
from agent_orchestrator.systems.phases.publication import say_published
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.system import PHASES

FILES_SHOWN = 5


def start_phases(orchestrator: Orchestrator, spec: PhasesSpec, start: Start = NOTHING_SPECIAL) -> Started:
    """Create a run on a branch of its own; raises Refused while another one is unfinished.

    It publishes only where `publish`, or without it the configuration, says so.
    """
    home = orchestrator.settings.home
    _refuse_without_git(home)
    said, doubt = choose_publication(orchestrator.settings, start.publish)
    spec = msgspec.structs.replace(spec, **msgspec.structs.asdict(said)) if said is not None else spec
    with alone(orchestrator.settings.folder, "phases"):
        _refuse_old_format(home)
        hide_files(orchestrator)
        notes = _make_room(orchestrator)
        run = checked_id(start.run_id, "--run-id") if start.run_id is not None else uuid.uuid4().hex[:8]
        with entering(orchestrator, PHASES.name, {checkout_of(str(home))}, run=run, shared=start.shared) as beside:
            _refuse_uncommitted(home, spec)
            _refuse_without_folder(home)
            spec = _on_branch(spec, home)
            context = start.make_context(orchestrator, run)
            started = create_owned(orchestrator, PHASES, spec, spec.plan.name[:80], context, start.budget)
            hide_files(orchestrator, started.run)
    published = (f"it publishes {say_published(spec.plan, spec.branch, spec)}",) if spec.publishes else (doubt,) if doubt else ()
    where = f"work happens on the branch {spec.branch}"
    return msgspec.structs.replace(started, notes=(*notes, *beside, *_note_tracked(home), where, *published))


def _note_tracked(home: Path) -> tuple[str, ...]:
    files = list_ours(top_level(home) or home)
    if not files:
        return ()
    listed = ", ".join(files[:FILES_SHOWN])
    told = f"git tracks {listed}, where the state of runs is written: it shows as changed and is never committed"
    return (f"{told}; `git rm --cached` makes git forget it",)


def import_phases(
    orchestrator: Orchestrator, spec: PhasesSpec, path: Path, document: dict[str, Any], budget: Budget
) -> TakenOver:
    """A run made of an agent-state.json, on a branch of its own from the current commit, and the account of the file."""
    home = orchestrator.settings.home
    _refuse_without_git(home)
    with alone(orchestrator.settings.folder, "phases"):
        now_us, run = orchestrator.clock.now_us(), uuid.uuid4().hex[:8]
        context = Context(run=RunId(run), home=str(home), workdir=str(home), created_us=now_us)
        taken = import_state(document, str(path), spec, context, find_head(home) or "")
        budget = taken.budget.override(budget)
        refuse_unmetered(budget, spec.agents.values())
        hide_files(orchestrator)
        archived = _make_room(orchestrator)
        _refuse_uncommitted(home, spec)
        _refuse_without_folder(home)
        owner = orchestrator.own(run)
        try:
            spec = _on_branch(taken.spec, home)
            beginning = Beginning(facts=taken.facts, budget=budget, spent_usd=taken.cost_usd)
            made = orchestrator.create(PHASES, spec, spec.plan.name[:80], context, beginning)
            if (mine := home / FOLDER / STATE_FILE).exists():
                move_aside(mine, "imported", home)
            orchestrator.settle(made)
        finally:
            owner.release()
    after = (*archived, f"branch: work continues on {spec.branch}")
    return TakenOver.told((orchestrator.find(run),), taken.account, after=after)


def _refuse_without_git(home: Path) -> None:
    if top_level(home) is None:
        raise Unavailable(
            detail=f"Phases need git for their checkpoints, and {home} is no repository; run `git init` and commit first."
        )


def _refuse_without_folder(home: Path) -> None:
    """Whoever watches the run reads its state file: one that can never be written is no run to start."""
    folder = home / FOLDER
    try:
        make_folder(home, folder)
    except OSError as error:
        raise Unavailable(detail=f"{folder} cannot be made for the state file: {error.strerror}; make room for it.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(detail=f"{folder} cannot be written to, and the state file belongs there; change its permissions.")


def _on_branch(spec: PhasesSpec, home: Path) -> PhasesSpec:
    target = find_branch(home) or ""
    return msgspec.structs.replace(spec, branch=switch_to_new(home, spec.branch), target=target)


def _refuse_old_format(home: Path) -> None:
    path = home / FOLDER / STATE_FILE
    try:
        document = msgspec.json.decode(read_bounded(path, EDIT_LIMIT_BYTES, root=home))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # What cannot be read is put aside when the new file is written.
    if is_old_format(document):
        raise InvalidDocument(path=path, what="state file", detail=f"{OLD_FORMAT}. Move it away to start a run here")


def _refuse_uncommitted(home: Path, spec: PhasesSpec) -> None:
    """Checkpoints are commits: what a person has not committed must not end up in one. The task document itself may.

    State files that another tool left are no such thing: they are taken over or put aside when ours are written.
    """
    top, ours = top_level(home) or home, Patterns(PHASES.files(spec, ""))
    below = "".join(f"{part}/" for part in home.relative_to(top).parts)
    files = [
        file
        for file in list_uncommitted(home)
        if top / file != Path(spec.document) and not (file.startswith(below) and ours.match(file.removeprefix(below)))
    ]
    if files:
        more = f" and {len(files) - FILES_SHOWN} more" if len(files) > FILES_SHOWN else ""
        listed = ", ".join(files[:FILES_SHOWN]) + more
        raise UsageError(
            detail=f"{home} has uncommitted changes ({listed}); commit or stash them first, checkpoints are commits."
        )


def _make_room(orchestrator: Orchestrator) -> tuple[str, ...]:
    notes = []
    here = str(orchestrator.settings.home)
    for run in (one for one in runs_of(orchestrator) if one.context.home == here):  # A fork has a home of its own.
        if not run.summary.ended:
            ways = f"continue with `orc resume {run.id}` or end it with `orc abort {run.id}`"
            raise Refused(why=f"Run {run.id} ({run.name}, {run.summary.status}) is unfinished in this repository; {ways}.")
        state: PhasesState = orchestrator.fold(run).state
        if not state.archived:
            _archive(orchestrator, run)
            notes.append(f"the files of run {run.id} are in {FOLDER}/archive/{run.id}")
    return tuple(notes)


def _archive(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Its print-outs move: written anew in the archive, and gone where they stood."""
    owner = orchestrator.own(run.id)
    try:
        orchestrator.keep_books(run, Instruct(id=uuid.uuid4().hex, what="archive"))
        orchestrator.settle(run)
    finally:
        owner.release()


def runs_of(orchestrator: Orchestrator) -> list[StoredRun]:
    """All phased runs of the repository, newest first; kept journals of replaced ones left out."""
    return [run for run in orchestrator.runs(Which(system=PHASES.name)) if run.id == run.context.run]


def find_phases(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """Find the run that is meant; left out, the newest."""
    if given is not None:
        return orchestrator.find_of(PHASES.name, given, "run of phases")
    known = runs_of(orchestrator)
    if not known:
        raise Refused(why=f"There is no run of phases in {orchestrator.settings.home}; `orc phases run` starts one.")
    return known[0]


def refuse_other_branch(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Raises Unavailable when agents would begin to work on another branch than the run's; those that live on are adopted."""
    state: PhasesState = orchestrator.fold(run).state
    if not state.lifecycle.ended and not orchestrator.launches().living(run.id):
        refuse_elsewhere(Path(run.context.home), state.spec.branch)


def change_publishing(orchestrator: Orchestrator, run: StoredRun, flag: bool | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what resuming a run changes about what it publishes, for `Resume.changes`, and what a person should know."""
    spec: PhasesSpec = orchestrator.fold(run).state.spec
    said, doubt = choose_publication(orchestrator.settings, flag, spec.publish)
    notes: tuple[str, ...] = (doubt,) if doubt else ()
    now = msgspec.structs.replace(spec, **msgspec.structs.asdict(said)) if said is not None else spec
    if spec.remote and spec.publish is None and not now.publishes:
        notes += (f"run {run.id} was started by a version that published by itself; nothing is published without --publish",)
    if now.publishes and now != spec:
        notes += (f"it publishes {say_published(now.plan, now.branch, now)}",)
    elif spec.publishes and not now.publishes:
        notes += ("nothing more is published; milestones and the pull request are files from now on",)
    changes = {"publish": msgspec.to_builtins(said)} if said is not None and now != spec else {}
    return changes, notes


def out_of_step(run: StoredRun, state: PhasesState) -> str | None:
    """Say what a person should know when the branch is not where the state thinks it is."""
    home = Path(run.context.home)
    branch, head = find_branch(home), find_head(home)
    if state.lifecycle.ended:
        return None
    if branch != state.spec.branch:
        return f"the branch {state.spec.branch} is not checked out ({branch or 'no branch'} is): git switch {state.spec.branch}"
    if not state.checkpoints:
        return None
    newest = state.checkpoints[-1]
    known = {one.git_sha: one.state_snapshot for one in state.checkpoints}
    if head in known and head != newest.git_sha:
        name = known[head].removesuffix(".json")
        now = newest.state_snapshot.removesuffix(".json")
        return f"git is at {name}, the state at {now}; `orc rewind {run.id} --to {name}` takes the state back too"
    return None
