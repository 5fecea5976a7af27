"""The hooks of teams: they have `coordination/` one at a time, and its files become one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.config import load_agents
from agent_orchestrator.errors import InvalidDocument, MissingPath
from agent_orchestrator.runs.hooks import Hooks
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.team.options import TeamOptions, prepare
from agent_orchestrator.runs.team.place import archives_of, claim_folder
from agent_orchestrator.runs.team.start import import_team, start_team
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.team.documents import PM_STATE
from agent_orchestrator.systems.team.imports import FILES
from agent_orchestrator.systems.team.spec import TeamSpec


class TeamHooks(Hooks):
    """The hooks of teams."""

    def prepare(self, orchestrator: Orchestrator, options: TeamOptions) -> Prepared[TeamSpec]:
        """Return the specification of a team."""
        return prepare(options, orchestrator.settings.home, load_agents(orchestrator.settings))

    def start(self, orchestrator: Orchestrator, options: TeamOptions, spec: TeamSpec, start: Start) -> Started:
        """Create the team."""
        return start_team(orchestrator, spec, start)

    def claim(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        """Take `coordination/` for the team."""
        claim_folder(orchestrator, run.id, again=True)

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the team's archives and its folder."""
        return [*archives_of(run), *super().print_outs(run, printed)]

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a team of the files of a `coordination/`."""
        plan = file.with_name("pm_state.json")
        if not plan.is_file():
            raise MissingPath(what="The plan of the team", path=plan)
        found = {name: file.parent / Path(name).relative_to(Path(PM_STATE).parent) for name in FILES}
        files = {name: read_object(one) for name, one in found.items() if one.is_file()}
        text = files[PM_STATE].get("original_requirements")
        if not isinstance(text, str) or not text.strip():
            raise InvalidDocument(path=plan, what="state file", detail="it has no original_requirements")
        settings, given = orchestrator.settings, TeamOptions(text=text, **options.only(TeamOptions))
        spec = prepare(given, settings.home, load_agents(settings)).spec
        run, notes = import_team(orchestrator, spec, plan, files)
        return TakenOver(runs=(run,), notes=notes)


HOOKS = TeamHooks()
