"""A scripted world for the pure workflow system: no engine, no process, a clock that moves only when told.

After every input it checks what must always hold: the journal survives JSON, folding it again gives the same run, the
state file is valid, and a running run never stands still without a reason.
"""

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
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, Input
from agent_orchestrator.core.report import Report, ReportRule, check_report
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.systems.workflow import WORKFLOW, WorkflowSpec, WorkflowState
from agent_orchestrator.systems.workflow.events import WorkflowEvent
from agent_orchestrator.systems.workflow.parse import env_names, parse
from agent_orchestrator.systems.workflow.state import StepRuntime

RUN = "f8c1a491"
HOME = "/repo"
START_US = from_iso("2025-01-15T14:30:00.123456Z")

_EVENTS = msgspec.json.Decoder(list[WorkflowEvent])


@cache
def run_state_schema() -> Any:
    """The published schema, compiled."""
    path = Path(package.__file__).parent / "schema" / "run_state.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text("utf-8")))


class World:
    """One run and its journal."""

    def __init__(
        self,
        text: str,
        *,
        environment: dict[str, str] | None = None,
        workdir: str = HOME,
        careful: bool = True,
        **options: Any,
    ) -> None:
        self.careful = careful
        """Whether everything is checked after each tick; a run of 10,000 steps is checked at its end."""
        spec = parse(text, "workflow.yaml").spec
        options.setdefault("agents", {"": AgentChoice(name="command")})
        known = environment or {}
        captured = {name: known[name] for name in env_names(spec) if name in known}
        self.spec: WorkflowSpec = msgspec.structs.replace(spec, when_env=captured, **options)
        self.context = Context(run=RUN, home=HOME, workdir=workdir, created_us=START_US)
        self.now_us = START_US
        self.journal: list[tuple[WorkflowEvent, int]] = []
        self.directives = 0
        self.state: WorkflowState = WORKFLOW.fresh(self.spec, self.context)
        self._add(WORKFLOW.begin(self.spec, self.context))
        self._advance()
        if self.careful:
            self.check()

    def tell(self, what: Input, after_s: float = 1.0) -> list[WorkflowEvent]:
        """One tick with one input; answers with its events."""
        self.now_us += int(after_s * US)
        begun = len(self.journal)
        self._add(WORKFLOW.decide(self.state, what, self.now_us))
        self._advance()
        if self.careful:
            self.check()
        return [event for event, _ in self.journal[begun:]]

    def agent(self, step: str, report: dict[str, Any] | None = None, **fields: Any) -> list[WorkflowEvent]:
        """The step's agent ends: well, unless `failure` is given."""
        effect = self.doing(step)
        assert isinstance(effect, RunAgent), f"{step} runs no agent: {effect}"
        read: Report | Failure | None = None
        failure = fields.pop("failure", None)
        if report is not None:
            read = check_report({"status": "COMPLETED"} | report, effect.report)
            if isinstance(read, Report) and read.status == "FAILED":
                failure = failure or Failure(kind=FailureKind.REPORTED, message=f"The agent reported failure: {read.summary}")
        outcome = AgentEnded(
            effect=effect.id,
            started_us=self.now_us,
            ended_us=self.now_us + US,
            failure=read if isinstance(read, Failure) else failure,
            report=read if isinstance(read, Report) else None,
            exit_code=fields.pop("exit_code", 0 if failure is None else 1),
            **fields,
        )
        return self.tell(outcome)

    def check_end(self, step: str, exit_code: int | None = 0, **fields: Any) -> list[WorkflowEvent]:
        """The step's check ends."""
        effect = self.doing(step)
        return self.tell(
            CheckEnded(effect=effect.id, started_us=self.now_us, ended_us=self.now_us + US, exit_code=exit_code, **fields)
        )

    def doing(self, step: str) -> Effect:
        """What the step does."""
        effect = self.state.doing.of(step)
        assert effect is not None, f"{step} does nothing"
        return effect

    def step(self, name: str) -> StepRuntime:
        """The step as the state file has it."""
        return self.state.steps[name]

    def statuses(self) -> dict[str, str]:
        """The status of each step."""
        return {name: step.status.value for name, step in self.state.steps.items()}

    def directive(self) -> str:
        """A new directive id."""
        self.directives += 1
        return f"d{self.directives}"

    def document(self) -> dict[str, Any]:
        """The state file, as a reader gets it."""
        (document,) = WORKFLOW.documents(self.state, self.now_us)
        body: dict[str, Any] = json.loads(msgspec.json.encode(document.body))
        return body

    def check(self) -> None:
        """What must hold after every tick."""
        state = self.state
        errors = [f"{error.instance_path}: {error.message}" for error in run_state_schema().iter_errors(self.document())]
        assert not errors, errors
        assert not WORKFLOW.faults("", self.document())
        again = self.folded()
        assert picture(again) == picture(state)
        assert again.spec == state.spec
        if state.lifecycle.running:
            assert len(state.doing), "a running run that does nothing is a hang"
        if state.lifecycle.ended:
            assert not len(state.doing)
            assert not state.due
        ids = [event.effect for event, _ in self.journal if type(event).__name__ in _BEGINNINGS and hasattr(event, "effect")]
        assert len(ids) == len(set(ids)), "an effect id was used twice"

    def folded(self) -> WorkflowState:
        """The run folded again from its journal, through JSON."""
        state = WORKFLOW.fresh(self.spec, self.context)
        decoded = _EVENTS.decode(msgspec.json.encode([event for event, _ in self.journal]))
        for event, (_, at_us) in zip(decoded, self.journal, strict=True):
            WORKFLOW.evolve(state, event, at_us)
        return state

    def _add(self, events: Any) -> None:
        for event in events:
            WORKFLOW.evolve(self.state, event, self.now_us)
            self.journal.append((event, self.now_us))

    def _advance(self) -> None:
        for _ in range(10_000):
            events = WORKFLOW.advance(self.state, self.now_us)
            if not events:
                return
            self._add(events)
        raise AssertionError("advance never falls silent")


_BEGINNINGS = {"StepStarted", "CheckStarted", "HumanAsked", "RetryScheduled", "GatesAwaited", "ItemsAsked"}


def picture(state: WorkflowState) -> dict[str, Any]:
    """Everything that is known of a run, for comparison."""
    (document,) = WORKFLOW.documents(state, 0)
    shown: dict[str, Any] = {
        "document": msgspec.to_builtins(document.body),
        "details": WORKFLOW.details(state),
        "summary": msgspec.to_builtins(WORKFLOW.summary(state)),
        "doing": [msgspec.to_builtins(effect) for effect in state.doing],
        "due": list(state.due.items()),
        "ready": state.dag.peek(),
    }
    return shown


def rule_of(effect: Effect) -> ReportRule:
    """The report rule of an agent's effect."""
    assert isinstance(effect, RunAgent)
    return effect.report


def failing(kind: FailureKind, message: str = "it went wrong") -> Failure:
    """A failure, briefly."""
    return Failure(kind=kind, message=message)
