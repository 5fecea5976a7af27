"""A workflow run in memory. `StepDocument` is the step as `run_state.json` prints it; `StepWork` is what we keep beside it.

Only `evolve` changes any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.limits import CHECKS_TOLD_MAX
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.when import Condition, Operand, holds, parse_when


class StepStatus(StrEnum):
    """The seed's words."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING_ON_HUMAN = "WAITING_ON_HUMAN"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


PENDING, RUNNING, WAITING_ON_HUMAN, COMPLETED, FAILED, SKIPPED = StepStatus
FINISHED = (COMPLETED, SKIPPED)


class StepDocument(msgspec.Struct, kw_only=True, gc=False):
    """One step in `run_state.json`: these twelve fields, in this order."""

    status: StepStatus = PENDING
    attempts: int = 0
    iteration_count: int = 0
    report_path: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    last_error: str | None = None
    artifacts: list[str] = []
    metrics: dict[str, str] = {}
    logs: list[str] = []
    manual_input_path: str | None = None
    blocked_by_loop: str | None = None


class StepWork(UnitRecord, kw_only=True, gc=False):
    """The work on a step, beyond its document."""

    next_attempt: int = 1
    summary: str = ""
    items: tuple[Any, ...] | None = None
    item: int = 0
    answer: dict[str, Any] | None = None
    listed: set[str] | None = None
    """The step's artifacts, to find one among those of thousands of items."""

    def list_artifacts(self, step: StepDocument, artifacts: Sequence[str]) -> None:
        """Adds artifacts to a step, each once; it costs what is added."""
        if self.listed is None or len(self.listed) != len(step.artifacts):
            self.listed = set(step.artifacts)
        for artifact in artifacts:
            if artifact not in self.listed:
                self.listed.add(artifact)
                step.artifacts.append(artifact)

    def forget_attempts(self) -> None:
        """Errors of attempts concern the iteration and the item in which they happened, and no other."""
        if self.feedback:
            self.feedback = tuple(entry for entry in self.feedback if "attempt" not in entry)


class WorkflowState:
    """One run. `due` are units that go on as soon as there is room: unit → agent or check."""

    __slots__ = (
        *("asking", "checks", "conditions", "context", "dag", "doing", "due", "failed", "gated", "lifecycle", "retired", "spec"),
        *("specs", "steps", "updated_us", "variables", "works"),
    )

    def __init__(self, spec: WorkflowSpec, context: Context) -> None:
        self.context = context
        self.lifecycle = Lifecycle()
        self.doing = Doing()
        self.due: dict[str, str] = {}
        self.asking: dict[str, None] = {}
        """Steps that wait for a person."""
        self.gated: dict[str, None] = {}
        """Steps that wait for gates."""
        self.failed: dict[str, str] = {}
        """Failed steps and the cause of each."""
        self.retired: dict[str, int] = {}
        """Launch counters of steps that a changed file dropped: should they come back, no launch is named twice."""
        self.steps: dict[str, StepDocument] = {step.id: StepDocument() for step in spec.steps}
        self.works: dict[str, StepWork] = {step.id: StepWork() for step in spec.steps}
        self.updated_us = context.created_us
        self.adopt(spec)

    def adopt(self, spec: WorkflowSpec, dag: Dag | None = None) -> None:
        """Takes over a spec for the steps at hand: the conditions, the variables and the graph, where it is not given."""
        self.spec = spec
        self.specs: dict[str, StepSpec] = {step.id: step for step in spec.steps}
        self.checks = tuple(dict.fromkeys(step.check for step in spec.steps if step.check))[:CHECKS_TOLD_MAX]
        self.dag = dag or Dag({step.id: step.needs for step in spec.steps})
        self.conditions: dict[str, Condition] = {step.id: parse_when(step.when) for step in spec.steps if step.when}
        self.variables = spec.variables | {"run_id": self.context.run}

    def name_effect(self, unit: str, kind: str, attempt: int | None = None) -> EffectId:
        """The id of the unit's next effect."""
        step, work = self.steps[unit], self.works[unit]
        tried = step.attempts if attempt is None else attempt
        return effect_id(
            self.context.run, UnitId(unit), step.iteration_count, tried, work.launches + 1, kind, self.context.generation
        )

    def applies(self, unit: str) -> bool:
        """Tell whether the step's `when` holds."""
        condition = self.conditions.get(unit)
        return condition is None or holds(condition, self._look_up)

    def _look_up(self, operand: Operand) -> str | None:
        name = operand.name or ""
        if operand.kind == "vars":
            return self.variables.get(name)
        if operand.kind == "env":
            return self.spec.when_env.get(name)
        step = self.steps[name]
        return step.status.value if operand.kind == "status" else step.metrics.get(operand.metric)
