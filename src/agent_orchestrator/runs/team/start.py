"""Teams of one repository: started one at a time, found again, asked and told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.events import Ended
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.errors import InvalidId, Refused, RunExists
from agent_orchestrator.git.branches import list_branches
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.runs.imports import TakenOver
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.runs.start import NOTHING_SPECIAL, Start, Started, create_owned
from agent_orchestrator.runs.team.options import refuse_nobody
from agent_orchestrator.runs.team.place import FOLDER, claim_folder, refuse_unfinished
from agent_orchestrator.runs.trees import entering
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.team.imports import FILES, BranchState, ImportedTeam, import_files
from agent_orchestrator.systems.team.spec import TeamSpec, session_id
from agent_orchestrator.systems.team.system import TEAM


def start_team(orchestrator: Orchestrator, spec: TeamSpec, start: Start = NOTHING_SPECIAL) -> Started:
    """Create a team; raises Refused while another one of the repository is unfinished."""
    home = orchestrator.settings.home
    with alone(orchestrator.settings.folder, "teams"):
        made = _free(orchestrator, session_id(orchestrator.clock.now_us())) if start.run_id is None else start.run_id
        run = checked_id(made, "--run-id")
        refuse_unfinished(orchestrator, run)
        with entering(orchestrator, TEAM.name, {checkout_of(str(home))}, run=run, shared=start.shared) as notes:
            claim_folder(orchestrator, run)
            started = create_owned(orchestrator, TEAM, spec, _name(spec), start.make_context(orchestrator, run), start.budget)
    return msgspec.structs.replace(started, notes=notes)


def _name(spec: TeamSpec) -> str:
    return " ".join(spec.requirements.split())[:80]


def import_team(orchestrator: Orchestrator, spec: TeamSpec, path: Path, files: Mapping[str, dict[str, Any]]) -> TakenOver:
    """A team made of the files of `coordination/`, by their names below it, and the account of them; raises RunExists."""
    home, now_us = orchestrator.settings.home, orchestrator.clock.now_us()
    taken = import_files(files, str(path), spec, lambda branch: _look(home, branch, spec.into))
    if not any(isinstance(fact, Ended) for fact in taken.facts):
        refuse_nobody(spec)
    with alone(orchestrator.settings.folder, "teams"):
        run, notes = _session(orchestrator, taken, now_us)
        refuse_unfinished(orchestrator, run)
        context = Context(run=RunId(run), home=str(home), workdir=str(home), created_us=now_us)
        owner = orchestrator.own(run)
        try:
            made = orchestrator.create(TEAM, spec, _name(spec), context, Beginning(facts=taken.facts))
            if path.resolve().parent == (home / FOLDER).resolve():
                for file in (home / name for name in FILES if (home / name).exists()):
                    move_aside(file, "imported", home)
            else:
                claim_folder(orchestrator, run)
            orchestrator.settle(made)
        finally:
            owner.release()
    return TakenOver.told((orchestrator.find(run),), taken.account, notes)


def _session(orchestrator: Orchestrator, taken: ImportedTeam, now_us: int) -> tuple[str, tuple[str, ...]]:
    """The files' own session, as a run; another one when it is no id."""
    given = taken.session
    try:
        checked_id(given, "The session")
    except InvalidId:
        made = _free(orchestrator, session_id(now_us))
        return made, (f"session_id: was {given!r}, is {made}",)
    assert given is not None
    if (known := orchestrator.store.run(given)) is not None:
        raise RunExists(run=known.id, status=known.summary.status)
    return given, ()


def _look(home: Path, branch: str, into: str) -> BranchState:
    """Return the state of a group's branch."""
    if branch == into:
        return BranchState.INTO
    if branch not in list_branches(home):
        return BranchState.MISSING
    return BranchState.MERGED if is_ancestor(home, branch, into) else BranchState.OPEN


def _free(orchestrator: Orchestrator, wanted: str) -> str:
    """Return the session id, or the next one when somebody began in the same second."""
    launches = orchestrator.settings.folder / "launches"
    run, number = wanted, 1
    while orchestrator.known(run) is not None or (launches / run).exists():
        number += 1
        run = f"{wanted}_{number}"
    return run


def find_team(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """Find the team that is meant; left out, the one that is unfinished, else the newest."""
    if given is not None:
        return orchestrator.find_of(TEAM.name, given, "team")
    for ended in (False, True):
        if newest := orchestrator.runs(Which(system=TEAM.name, ended=ended, most=1)):
            return newest[0]
    raise Refused(why=f"There is no team in {orchestrator.settings.home}; `orc team run` starts one.")
