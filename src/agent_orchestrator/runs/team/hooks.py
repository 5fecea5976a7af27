"""The hooks of teams: they have `coordination/` one at a time, and its files become one."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.errors import InvalidDocument, MissingPath
from agent_orchestrator.git.repository import host_of
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.runs.hooks import NOWHERE, Hooks, UnitPlace
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.team.options import TeamOptions, prepare
from agent_orchestrator.runs.team.place import archives_of, claim_folder
from agent_orchestrator.runs.team.start import import_team, start_team
from agent_orchestrator.runs.work import Work
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.team.documents import PM_STATE
from agent_orchestrator.systems.team.effects import tree_of
from agent_orchestrator.systems.team.imports import FILES, read_requirements
from agent_orchestrator.systems.team.spec import TeamSpec
from agent_orchestrator.systems.team.state import Stage, TeamState

COLUMNS = {
    **dict.fromkeys((Stage.DEVELOP, Stage.SAVE), "developing"),
    Stage.QA: "qa",
    **dict.fromkeys((Stage.REVIEW, Stage.CONSULT), "review"),
    **dict.fromkeys((Stage.MERGE, Stage.HELD), "merging"),
    Stage.COMPLETE: "merged",
}
"""The columns of a team's board; a group at any other stage is planned."""


class TeamHooks(Hooks):
    """The hooks of teams."""

    def prepare(self, orchestrator: Orchestrator, options: TeamOptions) -> Prepared[TeamSpec]:
        """Return the specification of a team."""
        return prepare(self.complete(orchestrator, options), orchestrator.settings.home, load_agents(orchestrator.settings))

    def start(self, orchestrator: Orchestrator, options: TeamOptions, spec: TeamSpec, start: Start) -> Started:
        """Create the team."""
        return start_team(orchestrator, spec, start)

    def claim(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        """Take `coordination/` for the team."""
        claim_folder(orchestrator, run.id, again=Path(run.context.home))

    def place_of(self, state: TeamState, unit: str) -> UnitPlace:
        """Return a group's name and its column."""
        group = state.groups.get(unit)
        return UnitPlace(group.name, COLUMNS.get(group.stage, "planned")) if group is not None else NOWHERE

    def works(self, run: StoredRun, state: TeamState) -> list[Work]:
        """Return the branches of the groups; a team merges those that are complete itself, a fork's into a branch of its own."""
        home, spec = Path(run.context.home), state.spec
        host = host_of(home)
        unready = "" if run.summary.ended else f"the team has not ended ({run.summary.status}), and merges it itself"
        own = Work(repo=str(host), folder=str(home), branch=spec.into, check=spec.check, unready=unready)
        return [
            *([own] if host != home else []),
            *(
                Work(
                    unit=group.unit,
                    title=group.name,
                    repo=str(host),
                    folder=str(folder_of(home, run.context.run, tree_of(state, group))),
                    branch=group.branch_name,
                    into=spec.into,
                    check=spec.check,
                    landed=group.merged or "",
                    unready=unready,
                )
                for group in state.groups.values()
            ),
        ]

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the team's archives and its folder."""
        return [*archives_of(run), *super().print_outs(run, printed)]

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a team of the files of a `coordination/`."""
        plan = file.with_name("pm_state.json")
        if not plan.is_file():
            raise MissingPath(what="The plan of the team", path=plan)
        found = {name: file.parent / Path(name).relative_to(Path(PM_STATE).parent) for name in FILES}
        files, broken = read_files(found)
        text = read_requirements(files[PM_STATE])
        if text is None:
            detail = "it has no original_requirements and no task_groups: there is no team to take over"
            raise InvalidDocument(path=plan, what="state file", detail=detail)
        settings, given = orchestrator.settings, TeamOptions(text=text, **options.only(TeamOptions))
        spec = prepare(self.complete(orchestrator, given), settings.home, load_agents(settings), may_be_over=True).spec
        taken = import_team(orchestrator, spec, plan, files)
        return msgspec.structs.replace(taken, notes=(*broken, *taken.notes))


def read_files(found: dict[str, Path]) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Read the files of a `coordination/`: the plan has to be one; of the others, those that can be read, and say which not."""
    files, notes = {PM_STATE: read_object(found[PM_STATE])}, []
    for name, file in found.items():
        if name == PM_STATE or not file.is_file():
            continue
        try:
            given = msgspec.json.decode(read_bounded(file, EDIT_LIMIT_BYTES, root=found[PM_STATE].parent).removeprefix(BOM_UTF8))
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            notes.append(f"{file.name}: cannot be read, {error}; left out")
            continue
        whole = {"messages" if "/messages/" in name else "groups": given} if isinstance(given, list) else given
        if isinstance(whole, dict):
            files[name] = whole
        else:
            notes.append(f"{file.name}: is not an object; left out")
    return files, tuple(notes)


HOOKS = TeamHooks()
