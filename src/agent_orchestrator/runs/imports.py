"""Takes over state files that have no journal here: written by another tool, by an earlier life, on another machine.

Sloppy files are read as far as they can be, and everything that had to be changed is said. Whatever is taken over stands
still until it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config import load_agents
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.errors import InvalidDocument, MissingPath, UsageError
from agent_orchestrator.runs.loop.start import import_loop
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.phases import options as phases_options
from agent_orchestrator.runs.phases.start import import_phases
from agent_orchestrator.runs.swarm.imports import Performer, find_beads, import_beads
from agent_orchestrator.runs.team import options as team_options
from agent_orchestrator.runs.team.start import import_team
from agent_orchestrator.runs.workflow import options as workflow_options
from agent_orchestrator.runs.workflow.start import import_workflow
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.team.documents import PM_STATE
from agent_orchestrator.systems.team.imports import FILES


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a state file does not say, as given: None means not given."""

    workflow: str | None = None
    document: str | None = None
    wrapper: str | None = None
    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    roles: tuple[str, ...] = ()
    into: str | None = None
    check: str | None = None
    no_check: bool = False
    allow_unmetered: bool = False

    def only(self, kind: type[Any]) -> dict[str, Any]:
        """Those that the options of a system have too."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name in kind.__struct_fields__}


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that files became, one but for the records of beads, and what was changed on the way."""

    runs: tuple[StoredRun, ...]
    notes: tuple[str, ...]


def take_over(orchestrator: Orchestrator, path: Path, options: ImportOptions) -> TakenOver:
    """Makes a run of a state file, or of the folder it lies in; of records of beads, one each."""
    found = find_beads(path)
    if found is not None:
        by = Performer(agent_command=options.agent_command, rehearse=options.rehearse)
        made, changed = import_beads(orchestrator, *found, by)
        return TakenOver(runs=tuple(made), notes=changed)
    file = _state_file(path)
    document = _read(file)
    run, notes = _FILES[file.name](orchestrator, file, document, options)
    return TakenOver(runs=(run,), notes=notes)


def _state_file(path: Path) -> Path:
    if path.is_dir():
        found = [path / name for name in _FILES if (path / name).is_file()]
        if not found:
            raise UsageError(detail=f"There is no state file in {path}; known are {', '.join(_FILES)}.")
        return found[0]
    if not path.exists():
        raise MissingPath(what="The state file", path=path)
    if path.name not in _FILES:
        raise UsageError(detail=f"{path} is no state file that can be taken over; known are {', '.join(_FILES)}.")
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidDocument(path=path, what="state file", detail=str(error)) from None


def _workflow(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], options: ImportOptions
) -> tuple[StoredRun, tuple[str, ...]]:
    if options.workflow is None:
        raise UsageError(detail=f"{file} is a run of a workflow: give its file with --workflow, and who performs its steps.")
    settings = orchestrator.settings
    given = workflow_options.WorkflowOptions(**options.only(workflow_options.WorkflowOptions))
    spec = workflow_options.prepare(given, settings.home, settings.environ, load_agents(settings)).spec
    return import_workflow(orchestrator, spec, file, document)


def _loop(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], options: ImportOptions
) -> tuple[StoredRun, tuple[str, ...]]:
    return import_loop(orchestrator, file, document)


def _phases(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], options: ImportOptions
) -> tuple[StoredRun, tuple[str, ...]]:
    if options.document is None:
        raise UsageError(detail=f"{file} is a run of a task document: give it with --document, and who works.")
    settings = orchestrator.settings
    given = phases_options.PhasesOptions(**options.only(phases_options.PhasesOptions))
    prepared = phases_options.prepare(given, settings.home, load_agents(settings))
    budget = Budget(allow_unmetered=True if options.allow_unmetered else None)
    return import_phases(orchestrator, prepared.spec, file, document, budget)


def _team(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], options: ImportOptions
) -> tuple[StoredRun, tuple[str, ...]]:
    plan = file.with_name("pm_state.json")
    if not plan.is_file():
        raise MissingPath(what="The plan of the team", path=plan)
    folder = Path(PM_STATE).parent
    found = {name: file.parent / Path(name).relative_to(folder) for name in FILES}
    files = {name: _read(one) for name, one in found.items() if one.is_file()}
    text = files[PM_STATE].get("original_requirements")
    if not isinstance(text, str) or not text.strip():
        raise InvalidDocument(path=plan, what="state file", detail="it has no original_requirements")
    settings = orchestrator.settings
    given = team_options.TeamOptions(text=text, **options.only(team_options.TeamOptions))
    spec = team_options.prepare(given, settings.home, load_agents(settings))
    return import_team(orchestrator, spec, plan, files)


Importer = Callable[[Orchestrator, Path, dict[str, Any], ImportOptions], tuple[StoredRun, tuple[str, ...]]]

_FILES: dict[str, Importer] = {
    "run_state.json": _workflow,
    "state.json": _loop,
    "current-loop.json": _loop,
    "agent-state.json": _phases,
    "pm_state.json": _team,
    "group_status.json": _team,
    "orchestrator_state.json": _team,
}
"""The names of state files, and who reads them."""
