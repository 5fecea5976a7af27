"""The hooks of workflow runs: the workflow file is compared when one goes on, a run_state.json becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.errors import OrcError, Refused, UsageError
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.hooks import Changes, Continuation, Hooks, say_unreadable
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.work import Work, all_of, own_work
from agent_orchestrator.runs.workflow.adoption import prepare_again, read_again, say_adopted, say_differences
from agent_orchestrator.runs.workflow.options import WorkflowOptions, add_step_budgets, prepare
from agent_orchestrator.runs.workflow.start import import_workflow, start_workflow
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.adoption import compare
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import WorkflowState


class WorkflowHooks(Hooks):
    """The hooks of workflow runs."""

    def prepare(self, orchestrator: Orchestrator, options: WorkflowOptions) -> Prepared[WorkflowSpec]:
        """Return the specification of a workflow file."""
        settings = orchestrator.settings
        return prepare(self.complete(orchestrator, options), settings.home, settings.environ, load_agents(settings))

    def set_budget(self, spec: WorkflowSpec, budget: Budget) -> Budget:
        """Return the budget as it is; the steps' own are checked with it."""
        refuse_unmetered(add_step_budgets(budget, spec), spec.choices)
        return budget

    def start(self, orchestrator: Orchestrator, options: WorkflowOptions, spec: WorkflowSpec, start: Start) -> Started:
        """Create the run."""
        return start_workflow(orchestrator, spec, start)

    def loop_backs(self, state: WorkflowState) -> list[tuple[str, str]]:
        """Return the steps that send the work back, each with the step it goes back to."""
        return [(step.id, step.loop_back_to) for step in state.spec.steps if step.loop_back_to in state.specs]

    def step_of(self, state: WorkflowState, unit: str, kind: str) -> str:
        """Return the step: runs of a workflow have the same."""
        return unit

    def works(self, run: StoredRun, state: WorkflowState) -> list[Work]:
        """Return the run's work; a merge of it must pass the checks of its steps."""
        checks = dict.fromkeys(step.check for step in state.spec.steps if step.check)
        return [own_work(run, check=all_of(checks))]

    def go_on(self, orchestrator: Orchestrator, run: StoredRun, changes: Mapping[str, Any], *, adopt: bool) -> Continuation:
        """Read the workflow file again, unless the command brings one."""
        if "spec" in changes:
            return Continuation()
        held: WorkflowSpec = orchestrator.fold(run).state.spec
        if adopt:
            _refuse_adopting(orchestrator, run, held)
        if held.file is None:
            return Continuation()
        file, settings = Path(held.file), orchestrator.settings
        try:
            if adopt:
                spec = prepare_again(file, settings.home, settings.environ, load_agents(settings), held)
            else:
                spec = read_again(file, settings.home, held)
        except OrcError as error:
            if adopt:
                raise
            note = say_unreadable(file, error)
            return Continuation(lambda state: ({}, [note]))
        return Continuation(lambda state: _compare_file(file, spec, state, adopt=adopt), _check_budgets)

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a run of a run_state.json."""
        document = read_object(file)
        if options.workflow is None:
            raise UsageError(detail=f"{file} is a run of a workflow: give its file with --workflow, and who performs its steps.")
        spec = self.prepare(orchestrator, WorkflowOptions(**options.only(WorkflowOptions))).spec
        return import_workflow(orchestrator, spec, file, document)


def _compare_file(file: Path, spec: WorkflowSpec, state: WorkflowState, *, adopt: bool) -> tuple[Changes, list[str]]:
    """Return what of the file is adopted, and what differs. Nothing of it is taken unless a person asks for it."""
    found, run = compare(state, spec), state.context.run
    if not adopt:
        return {}, say_differences(file, run, found) if found else []
    if not found:
        return {}, [f"{file.name} has not changed since the run began; there is nothing to adopt."]
    taken = any(not one.done for one in found)
    return {"spec": msgspec.to_builtins(spec)} if taken else {}, say_adopted(file, run, found)


def _check_budgets(state: WorkflowState, adopted: Changes) -> None:
    """Raise where an adopted step has a budget that its agent would escape."""
    if adopted:
        refuse_unmetered(add_step_budgets(state.doing.budget, state.spec), state.spec.choices)


def _refuse_adopting(orchestrator: Orchestrator, run: StoredRun, held: WorkflowSpec) -> None:
    if held.file is None:
        way = f"`orc run --workflow FILE --run-id {run.id} --start-at-step STEP` takes it up with a file"
        raise Refused(why=f"Run {run.id} does not say which file it was made of; {way}.")
    if living := orchestrator.launches().living(run.id):
        names = ", ".join(dict.fromkeys(effect.split("/")[1] for effect in living))
        raise Refused(why=f"Agents of run {run.id} are still alive ({names}); stop them with `orc pause {run.id} --now` first.")


HOOKS = WorkflowHooks()
