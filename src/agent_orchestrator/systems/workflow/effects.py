"""Builds a step's effects from the spec and the state. Plain data; paths are relative to the run's home or its tree."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_orchestrator.core.doing import PlannedAgent
from agent_orchestrator.core.effects import AskHuman, AwaitGates, ReadFile, RunAgent, RunCheck
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.report import COMPLETED, FAILED, ReportRule, common_words
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.unit import time_left_s
from agent_orchestrator.systems.workflow.spec import ItemLoop, StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.state import WorkflowState

WORDS = {COMPLETED: COMPLETED, FAILED: FAILED}
ALIASES = common_words(WORDS, completed=COMPLETED)
"""A step's report must use one of these."""

GATE = "gate"
ISSUE = "ISSUE_NUMBER"


class Gate(msgspec.Struct, frozen=True):
    """The field that a step which loops back may add to its report."""

    gate_failure: Annotated[
        bool | str | None,
        Meta(
            description="Null or false, unless the work that was looked at must not pass: then one sentence that says why.",
            examples=[False],
        ),
    ] = None


FORMS: Forms = {GATE: Gate}


def run_directory(run: str) -> str:
    """The run's directory of print-outs, relative to its home."""
    return f".agents/runs/{run}"


def answer_file(run: str, unit: str) -> str:
    """Give the path of a person's answer, relative to the run's home."""
    return f"{run_directory(run)}/manual_inputs/{run}__{unit}.json"


def report_file(run: str, unit: str) -> str:
    """Give the path of the copy of the newest report, relative to the run's home."""
    return f"{run_directory(run)}/reports/{run}__{unit}.json"


class _PlannedStep(PlannedAgent, frozen=True, gc=False):
    """The agent of a step, for the iteration, attempt and item at which it started."""

    spec: WorkflowSpec
    step: StepSpec
    context: Context
    variables: dict[str, str]
    checks: tuple[str, ...]
    inputs: dict[str, tuple[str, ...]]
    iteration: int
    attempt: int
    feedback: tuple[dict[str, Any], ...]
    session: str | None
    spent_us: int
    items: tuple[Any, ...] | None
    item: int

    def build(self) -> RunAgent:
        """Return the effect."""
        spec, step, run = self.spec, self.step, self.context.run
        choice = spec.choice_for(step)
        timeout_s = step.timeout_s if step.timeout_s is not None else spec.timeout_s
        variables, env = self.variables, spec.env
        if ISSUE in env:
            env = _issue_file(self.context, env[ISSUE]) | env
        if step.loop is not None and self.items:
            item_text, env_of_item = _item(step.loop, self.items[self.item], self.item)
            variables, env = variables | item_text, env | env_of_item
        return RunAgent(
            id=self.id,
            unit=self.unit,
            agent=choice,
            role=step.agent,
            report=ReportRule(
                words=WORDS,
                aliases=ALIASES,
                required=choice.name == "wrapper" or step.loop_back_to is not None or step.human_in_the_loop,
                ids={"run_id": run, "step_id": self.unit, "agent": step.agent},
                form=GATE if step.loop_back_to is not None else "",
            ),
            iteration=self.iteration,
            attempt=self.attempt,
            prompt_file=step.prompt_path or step.prompt,
            variables=variables,
            env=env,
            inputs=self.inputs,
            feedback=self.feedback,
            answer_file=answer_file(run, self.unit) if step.human_in_the_loop and step.answer_file else None,
            report_copy=report_file(run, self.unit),
            artifacts_dir=f"{run_directory(run)}/artifacts",
            session=self.session,
            allowed_commands=self.checks,
            timeout_s=time_left_s(timeout_s, self.spent_us),
            idle_timeout_s=spec.idle_timeout_s,
            step_limits=step.budget,
            attempt_limits=step.attempt_budget,
        )


def plan_agent(state: WorkflowState, unit: str, effect: EffectId) -> PlannedAgent:
    """The step's agent, for the iteration, attempt and item that the state is at."""
    step, runtime, work = state.specs[unit], state.steps[unit], state.works[unit]
    inputs = {need: tuple(state.steps[need].artifacts) for need in step.needs} if step.needs else {}
    return _PlannedStep(
        effect,
        unit,
        state.spec,
        step,
        state.context,
        state.variables,
        state.checks,
        inputs,
        runtime.iteration_count,
        runtime.attempts,
        work.feedback,
        work.session,
        work.spent_us,
        work.items,
        work.item,
    )


def run_check(state: WorkflowState, unit: str, effect: EffectId) -> RunCheck:
    """The step's check."""
    return RunCheck(id=effect, unit=unit, command=state.specs[unit].check or "")


def ask_human(state: WorkflowState, unit: str, effect: EffectId, after: EffectId) -> AskHuman:
    """The question whether the step's work is good."""
    summary = state.works[unit].summary
    question = f"Approve step {unit}?" + (f" {summary}" if summary else "")
    file = answer_file(state.context.run, unit) if state.specs[unit].answer_file else ""
    return AskHuman(id=effect, unit=unit, question=question, answer_file=file, after=after)


def await_gates(state: WorkflowState, unit: str, effect: EffectId) -> AwaitGates:
    """The wait for the step's gates."""
    return AwaitGates(id=effect, unit=unit, file=state.spec.gate_state_file or "", names=state.specs[unit].gates)


def read_items(state: WorkflowState, unit: str, effect: EffectId) -> ReadFile:
    """The reading of the file that lists the items of the step's loop, or may: the first artifact of a step above."""
    loop = state.specs[unit].loop
    path = loop.items_from_artifact if loop is not None else None
    if loop is not None and loop.items_from_step is not None:
        path = next(iter(state.steps[loop.items_from_step].artifacts), None)
    return ReadFile(id=effect, unit=unit, path=path or "")


def _issue_file(context: Context, issue: str) -> dict[str, str]:
    """Name the file, among the run's artifacts, in which agents keep the issue that the run is about."""
    name = f"gh_issue_{issue}.md"
    folder = f"{context.home}/{run_directory(context.run)}/artifacts"
    return {"ISSUE_MARKDOWN_FILENAME": name, "ISSUE_MARKDOWN_DIR": folder, "ISSUE_MARKDOWN_PATH": f"{folder}/{name}"}


def _item(loop: ItemLoop, item: Any, index: int) -> tuple[dict[str, str], dict[str, str]]:
    """The current item for the prompt (`{item}`, text as it is) and for the environment (JSON)."""
    as_json = msgspec.json.encode(item).decode()
    prompt = {loop.item_var: item if isinstance(item, str) else as_json, loop.index_var: str(index)}
    return prompt, {f"LOOP_{loop.item_var.upper()}": as_json, f"LOOP_{loop.index_var.upper()}": str(index)}
