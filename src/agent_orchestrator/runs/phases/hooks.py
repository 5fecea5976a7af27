"""The hooks of runs of phases: they work on their branch and publish if asked to, an agent-state.json becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.inputs import Instruct, Posted
from agent_orchestrator.errors import OrcError, UsageError
from agent_orchestrator.git.repository import host_of
from agent_orchestrator.runs.hooks import NOWHERE, Changes, Continuation, Hooks, UnitPlace, say_unreadable
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.phases.options import PhasesOptions, prepare, read_document
from agent_orchestrator.runs.phases.start import change_publishing, import_phases, out_of_step, refuse_other_branch, start_phases
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.work import Work, all_of
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.phases.bounds import budget_of
from agent_orchestrator.systems.phases.documents import FOLDER
from agent_orchestrator.systems.phases.spec import PhasesPlan, PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState

PLANNED = ("name", "goal", "context", "criteria", "phases", "tasks")
"""The fields of a plan that come from the task document alone: all else may be given on a command line."""


class PhasesHooks(Hooks):
    """The hooks of runs of phases."""

    skips = True

    def prepare(self, orchestrator: Orchestrator, options: PhasesOptions) -> Prepared[PhasesSpec]:
        """Return the specification of a phased run."""
        return prepare(self.complete(orchestrator, options), orchestrator.settings.home, load_agents(orchestrator.settings))

    def set_budget(self, spec: PhasesSpec, budget: Budget) -> Budget:
        """Return the budget with the bounds of the plan."""
        return super().set_budget(spec, budget.override(budget_of(spec.plan.bounds)))

    def start(self, orchestrator: Orchestrator, options: PhasesOptions, spec: PhasesSpec, start: Start) -> Started:
        """Create the phased run."""
        return start_phases(orchestrator, spec, start)

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the run's archive and its folder; files that lie among others go where they are still what it printed."""
        home = Path(run.context.home)
        return [home / FOLDER / "archive" / run.id, *super().print_outs(run, printed), *(home / path for path in printed)]

    def place_of(self, state: PhasesState, unit: str) -> UnitPlace:
        """Return a task's name and its phase."""
        task, phases = state.plan.get(unit), state.spec.plan.phases
        if task is None or task.phase >= len(phases):
            return NOWHERE
        phase = phases[task.phase]
        return UnitPlace(task.name, f"Phase {phase.number}: {phase.name}" if phase.name else f"Phase {phase.number}")

    def retry(self, run: StoredRun, unit: str, directive: str) -> Posted:
        """Return what `orc phases retry` sends."""
        return Instruct(id=directive, what="retry", values={"task": unit})

    def works(self, run: StoredRun, state: PhasesState) -> list[Work]:
        """Return the run's branch, which the checkout is on; a merge of it must pass what the plan demands at the end."""
        spec, home = state.spec, run.context.home
        repo = str(host_of(Path(home)))  # A fork has a worktree of its own for its home.
        check = all_of(one.command for one in spec.plan.criteria)
        unready = "" if run.summary.ended else f"the run has not ended ({run.summary.status})"
        return [Work(repo=repo, folder=home, branch=spec.branch, into=spec.target, check=check, unready=unready)]

    def publish(self, orchestrator: Orchestrator, run: StoredRun, flag: bool | None) -> tuple[Changes, tuple[str, ...]]:
        """Return what going on changes about what the run publishes."""
        return change_publishing(orchestrator, run, flag)

    def go_on(self, orchestrator: Orchestrator, run: StoredRun, changes: Mapping[str, Any], *, adopt: bool) -> Continuation:
        """Raise Unavailable where agents would begin to work on another branch than the run's."""
        if adopt:
            why = "tasks of a run of phases are changed in its state file, .claude/agent-state.json, before it is resumed"
            raise UsageError(detail=f"--adopt-changes is for workflows; {why}.")
        refuse_other_branch(orchestrator, run)
        return Continuation(lambda state: ({}, _notes(run, state)))

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a run of an agent-state.json."""
        document = read_object(file)
        if options.document is None:
            raise UsageError(detail=f"{file} is a run of a task document: give it with --document, and who works.")
        settings, given = orchestrator.settings, PhasesOptions(**options.only(PhasesOptions))
        spec = prepare(self.complete(orchestrator, given), settings.home, load_agents(settings)).spec
        budget = Budget(allow_unmetered=True if options.allow_unmetered else None)
        return import_phases(orchestrator, spec, file, document, budget)


def _notes(run: StoredRun, state: PhasesState) -> list[str]:
    """Return a note if the document changed, or the branch is elsewhere; the run continues as it was begun."""
    odd = out_of_step(run, state)
    return [*_plan_notes(state.spec, run), *([odd] if odd is not None else [])]


def _plan_notes(spec: PhasesSpec, run: StoredRun) -> list[str]:
    file = Path(spec.document)
    try:
        plan = read_document(file, Path(run.context.home)).plan
    except OrcError as error:
        return [say_unreadable(file, error)]
    keys = [name for name in PLANNED if _said(plan, name) != _said(spec.plan, name)]
    if not keys:
        return []
    way = f"tasks are changed in {run.context.home}/.claude/agent-state.json"
    return [f"{file.name} changed since the run began ({', '.join(keys)}). It continues as it was begun; {way}."]


def _said(plan: PhasesPlan, name: str) -> Any:
    """Return a field of a plan as the document says it: which program is here, and so what is run, may change by itself."""
    match name:
        case "criteria":
            return [one.text for one in plan.criteria]
        case "tasks":
            return [(one.id, one.name, one.description, [some.text for some in one.criteria], one.needs) for one in plan.tasks]
        case "phases":
            return [(one.number, one.name) for one in plan.phases]
    return getattr(plan, name)


HOOKS = PhasesHooks()
