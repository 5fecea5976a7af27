"""Compares the file that a run was made of with what it is now, when the run is taken up.

Nothing is taken unless a person asks for it; a file that is gone or broken does not keep a run from going on as it was begun.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config import load_agents
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.errors import MissingPath, OrcError, Refused, UsageError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.phases.options import read_document
from agent_orchestrator.runs.workflow.adoption import prepare_again, read_again, say_adopted, say_differences
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.workflow.adopting import compare
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import WorkflowState

PLANNED = ("name", "goal", "context", "criteria", "phases", "tasks")
"""What of a plan comes from the task document alone: all else may be given on a command line."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow file of a run as it is now; without `spec` there is nothing to compare."""

    file: Path = Path()
    spec: WorkflowSpec | None = None
    adopt: bool = False
    notes: tuple[str, ...] = ()

    def compared(self, run: str, state: Any) -> tuple[dict[str, Any], list[str]]:
        """What resuming the run changes, for `Resume.changes`, and what a person should know."""
        if self.spec is None or not isinstance(state, WorkflowState):
            return {}, list(self.notes)
        found = compare(state, self.spec)
        if not self.adopt:
            return {}, say_differences(self.file, run, found) if found else []
        if not found:
            return {}, [f"{self.file.name} has not changed since the run began; there is nothing to adopt."]
        taken = any(not one.done for one in found)
        return {"spec": msgspec.to_builtins(self.spec)} if taken else {}, say_adopted(self.file, run, found)


def read_source(orchestrator: Orchestrator, run: StoredRun, *, adopt: bool = False) -> Source:
    """The file that a run was made of; raises where it is to be adopted and cannot be."""
    state = orchestrator.fold(run).state
    if adopt:
        _refuse_adopting(orchestrator, run, state)
    if isinstance(state.spec, PhasesSpec):
        return Source(notes=_plan_notes(state.spec, run))
    file = Path(state.spec.file) if isinstance(state.spec, WorkflowSpec) and state.spec.file is not None else None
    if file is None:
        return Source()
    settings = orchestrator.settings
    try:
        if adopt:
            spec = prepare_again(file, settings.home, settings.environ, load_agents(settings), state.spec)
        else:
            spec = read_again(file, settings.home)
    except OrcError as error:
        if adopt:
            raise
        return Source(notes=(_unreadable(file, error),))
    return Source(file=file, spec=spec, adopt=adopt)


def _refuse_adopting(orchestrator: Orchestrator, run: StoredRun, state: Any) -> None:
    if isinstance(state.spec, PhasesSpec):
        why = "tasks of a run of phases are changed in its state file, .claude/agent-state.json, before it is resumed"
        raise UsageError(detail=f"--adopt-changes is for workflows; {why}.")
    if not isinstance(state.spec, WorkflowSpec):
        raise UsageError(detail=f"Run {run.id} is a {run.system}; --adopt-changes is for workflows.")
    if state.spec.file is None:
        way = f"`orc run --workflow FILE --run-id {run.id} --start-at-step STEP` takes it up with a file"
        raise Refused(why=f"Run {run.id} does not say which file it was made of; {way}.")
    if living := orchestrator.launches().living(run.id):
        names = ", ".join(dict.fromkeys(unit_of(effect) for effect in living))
        raise Refused(why=f"Agents of run {run.id} are still alive ({names}); stop them with `orc pause {run.id} --now` first.")


def _plan_notes(spec: PhasesSpec, run: StoredRun) -> tuple[str, ...]:
    """That the task document changed."""
    file = Path(spec.document)
    try:
        plan = read_document(file).plan
    except OrcError as error:
        return (_unreadable(file, error),)
    keys = [name for name in PLANNED if getattr(plan, name) != getattr(spec.plan, name)]
    if not keys:
        return ()
    way = f"tasks are changed in {run.context.home}/.claude/agent-state.json"
    return (f"{file.name} changed since the run began ({', '.join(keys)}). It goes on as it was begun; {way}.",)


def _unreadable(file: Path, error: OrcError) -> str:
    if isinstance(error, MissingPath):
        return f"{file} is gone; the run goes on as it was begun."
    first, *more = str(error).splitlines()
    others = f" (and {len(more)} more)" if more else ""
    return f"{file.name} is not usable now; the run goes on as it was begun. {first.rstrip('.')}{others}."
