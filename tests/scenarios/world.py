"""The pure workflow system, played by hand; every state file is checked against the published schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

import agent_orchestrator.systems.workflow as package
from agent_orchestrator.core.effects import AgentChoice, Effect, RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.systems.workflow.parse import env_names, parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import StepDocument
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.played import HOME, START_US, Played

__all__ = ["HOME", "RUN", "START_US", "World", "failing", "rule_of", "run_state_schema"]

RUN = "f8c1a491"


@cache
def run_state_schema() -> Any:
    """The published schema, compiled."""
    path = Path(package.__file__).parent / "schema" / "run_state.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text("utf-8")))


class World(Played):
    """One workflow run and its journal."""

    def __init__(
        self,
        text: str,
        *,
        environment: dict[str, str] | None = None,
        workdir: str = HOME,
        careful: bool = True,
        **options: Any,
    ) -> None:
        spec = parse(text, "workflow.yaml").spec
        options.setdefault("agents", {"": AgentChoice(name="command")})
        known = environment or {}
        captured = {name: known[name] for name in env_names(spec) if name in known}
        made: WorkflowSpec = msgspec.structs.replace(spec, when_env=captured, **options)
        super().__init__(WORKFLOW, made, RUN, workdir=workdir, careful=careful)

    def step(self, name: str) -> StepDocument:
        """The step as the state file has it."""
        step: StepDocument = self.state.steps[name]
        return step

    def statuses(self) -> dict[str, str]:
        """The status of each step."""
        return {name: step.status.value for name, step in self.state.steps.items()}

    def faults(self) -> list[str]:
        """Against the published schema."""
        return [f"{error.instance_path}: {error.message}" for error in run_state_schema().iter_errors(self.document())]

    def picture(self, state: Any) -> dict[str, Any]:
        """Return all that is known of a run, for comparison."""
        return {**super().picture(state), "due": list(state.due.items()), "ready": state.dag.peek()}


def rule_of(effect: Effect) -> ReportRule:
    """The report rule of an agent's effect."""
    assert isinstance(effect, RunAgent)
    return effect.report


def failing(kind: FailureKind, message: str = "it went wrong") -> Failure:
    """A failure, briefly."""
    return Failure(kind=kind, message=message)
