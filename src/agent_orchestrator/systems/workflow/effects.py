"""Builds a step's effects from the spec and the state. Plain data; paths are relative to the run's home or its tree."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agent_orchestrator.core.effects import AskHuman, AwaitGates, ReadFile, RunAgent, RunCheck
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.report import COMPLETED, FAILED, ReportRule, common_words
from agent_orchestrator.systems.workflow.spec import StepSpec
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


def run_agent(state: WorkflowState, unit: str, effect: EffectId) -> RunAgent:
    """The step's agent, for the iteration, attempt and item that the state is at."""
    spec, step = state.spec, state.specs[unit]
    runtime, work, run = state.steps[unit], state.works[unit], state.context.run
    choice = spec.choice_for(step)
    timeout_s = step.timeout_s if step.timeout_s is not None else spec.timeout_s
    variables, env = state.variables, spec.env
    if ISSUE in env:
        env = _issue_file(state) | env
    if step.loop is not None:
        item_text, env_of_item = _item(state, step)
        variables, env = variables | item_text, env | env_of_item
    return RunAgent(
        id=effect,
        unit=unit,
        agent=choice,
        role=step.agent,
        report=ReportRule(
            words=WORDS,
            aliases=ALIASES,
            required=choice.name == "wrapper" or step.loop_back_to is not None or step.human_in_the_loop,
            ids={"run_id": run, "step_id": unit, "agent": step.agent},
            form=GATE if step.loop_back_to is not None else "",
        ),
        iteration=runtime.iteration_count,
        attempt=runtime.attempts,
        prompt_file=step.prompt_path or step.prompt,
        variables=variables,
        env=env,
        inputs={need: tuple(state.steps[need].artifacts) for need in step.needs} if step.needs else {},
        feedback=work.feedback,
        answer_file=answer_file(run, unit) if step.human_in_the_loop and step.answer_file else None,
        report_copy=report_file(run, unit),
        artifacts_dir=f"{run_directory(run)}/artifacts",
        session=work.session,
        allowed_commands=state.checks,
        timeout_s=work.time_left_s(timeout_s),
        idle_timeout_s=spec.idle_timeout_s,
        step_limits=step.budget,
        attempt_limits=step.attempt_budget,
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


def _issue_file(state: WorkflowState) -> dict[str, str]:
    """Name the file, among the run's artifacts, in which agents keep the issue that the run is about."""
    name = f"gh_issue_{state.spec.env[ISSUE]}.md"
    folder = f"{state.context.home}/{run_directory(state.context.run)}/artifacts"
    return {"ISSUE_MARKDOWN_FILENAME": name, "ISSUE_MARKDOWN_DIR": folder, "ISSUE_MARKDOWN_PATH": f"{folder}/{name}"}


def _item(state: WorkflowState, step: StepSpec) -> tuple[dict[str, str], dict[str, str]]:
    """The current item for the prompt (`{item}`, text as it is) and for the environment (JSON)."""
    work, loop = state.works[step.id], step.loop
    if loop is None or not work.items:
        return {}, {}
    item = work.items[work.item]
    as_json = msgspec.json.encode(item).decode()
    prompt = {loop.item_var: item if isinstance(item, str) else as_json, loop.index_var: str(work.item)}
    return prompt, {f"LOOP_{loop.item_var.upper()}": as_json, f"LOOP_{loop.index_var.upper()}": str(work.item)}
