"""The pure phases system, played by hand; every state file is checked against the published schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

import agent_orchestrator.systems.phases as package
from agent_orchestrator.core.effects import AgentChoice, Checkpoint, Merge
from agent_orchestrator.core.events import LimitsSet, TakenUp
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded, Edited, FileChange, MergeEnded, MergeVerdict
from agent_orchestrator.core.system import Context
from agent_orchestrator.systems.phases.documents import position, warnings
from agent_orchestrator.systems.phases.imports import import_state
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.system import PHASES
from tests.scenarios.played import START_US, Played

PHASES_RUN = "c0ffee00"


@cache
def agent_state_schema() -> Any:
    """The published schema, compiled."""
    path = Path(package.__file__).parent / "schema" / "agent_state.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text("utf-8")))


class PhasesWorld(Played):
    """One run of a task document and its journal."""

    state: PhasesState

    def __init__(self, document: str, state_file: object = None, **options: Any) -> None:
        plan = parse_document(document, "task.md").plan
        given = {"document": "/repo/task.md", "plan": plan, "agents": {"": AgentChoice(name="command")}, "branch": "phases/task"}
        spec = msgspec.convert(msgspec.to_builtins({**given, **options}), PhasesSpec)
        facts: tuple[Any, ...] = ()
        if state_file is not None:
            context = Context(run=RunId(PHASES_RUN), home="/repo", workdir="/repo", created_us=START_US)
            taken = import_state(state_file, "agent-state.json", spec, context, "head")
            spec, facts = taken.spec, (*taken.facts, LimitsSet(limits=taken.budget))
        super().__init__(PHASES, spec, PHASES_RUN, also=facts)
        self.commits = 0
        self.happen(TakenUp(boot="1", host="here", pid=4711, version=""))

    def saved(self, unit: str, *, changed: str = "", failure: str = "", nothing: bool = False) -> list[Any]:
        """The unit's tree is kept or committed."""
        effect = self.doing(unit)
        assert isinstance(effect, Checkpoint), f"no tree is being saved: {effect}"
        if failure:
            return self.tell(CheckpointEnded(effect=effect.id, unavailable=failure))
        self.commits += 1
        outcome = CheckpointEnded(
            effect=effect.id,
            commit=f"kept-{self.commits}",
            tree=f"tree-{self.commits}",
            head="head",
            changed=tuple(FileChange("M", path, "b10b") for path in changed.split()),
            diff=f"+ tree-{self.commits}",
            branch_commit=f"commit-{self.commits}" if effect.branch_message is not None and not nothing else None,
        )
        return self.tell(outcome)

    def merged(self, unit: str, verdict: str = "landed", detail: str = "") -> list[Any]:
        """The unit's merge ended."""
        effect = self.doing(unit)
        assert isinstance(effect, Merge), f"nothing is merged: {effect}"
        self.commits += 1
        commit = f"merge-{self.commits}" if verdict == "landed" else None
        return self.tell(MergeEnded(effect=effect.id, verdict=MergeVerdict(verdict), detail=detail, commit=commit))

    def restore(self, number: int) -> list[Any]:
        """A checkpoint was copied over the state file."""
        path = next(iter(self.documents()))
        return self.tell(Edited(path=path, document=msgspec.to_builtins(self.state.snapshots[number].body)))

    def prompt(self, unit: str) -> str:
        """Return the prompt of the agent at work."""
        return getattr(self.doing(unit), "prompt_text", None) or ""

    def faults(self) -> list[str]:
        """Against the published schema."""
        return [f"{error.instance_path}: {error.message}" for error in agent_state_schema().iter_errors(self.document())]


def phases_lines(state: PhasesState) -> dict[str, str]:
    """Return the state of the run and of its units, a line each."""
    phase, task, iteration = position(state)
    said = {"": f"= {state.status.value} phase={phase} task={task} iteration={iteration}"}
    for done in state.completed.values():
        said[done.task] = f"= {done.task} completed iterations={done.iterations} files={list(done.files_modified)}"
    for name, why in state.skipped.items():
        said[name] = f"= {name} skipped: {why}"
    for unit, work in state.works.items():
        parts = [f"= {unit} {work.purpose or 'begins'} iteration={work.iteration} attempt={work.attempt}"]
        parts += [f"asks={work.asking}"] if work.asking else []
        parts += [f"trouble={work.trouble!r}"] if work.trouble else []
        said[unit] = " ".join(parts)
    checked = state.supervisor
    if checked.checks_performed:
        fixes = f"fixes={checked.auto_fixes_applied} re_plans={checked.re_plans_triggered}"
        said["supervisor"] = f"= supervisor checks={checked.checks_performed} conflicts={checked.conflicts_detected} {fixes}"
    told = warnings(state)
    if told:
        said["warnings"] = f"= warnings {told}"
    return said
