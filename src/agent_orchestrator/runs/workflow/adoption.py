"""The workflow file of a run that goes on, read again: what differs since, in words, and what the run can be given of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.runs.workflow.options import WorkflowOptions, find_prompts, prepare, read_workflow
from agent_orchestrator.runs.workflow.task import with_task
from agent_orchestrator.systems.workflow.adoption import Difference
from agent_orchestrator.systems.workflow.parse import parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec, with_prompts

SHOWN = 8


def read_again(file: Path, home: Path, held: WorkflowSpec) -> WorkflowSpec:
    """The file as it is now, for comparing; raises when it is gone or broken. Agents are not looked at."""
    spec = with_task(parse(read_workflow(file), str(file)).spec, held.variables)
    return with_prompts(spec, find_prompts(spec, file, home))


def prepare_again(
    file: Path, home: Path, environ: Mapping[str, str], configured: Mapping[str, AgentSettings], held: WorkflowSpec
) -> WorkflowSpec:
    """The file as it is now, for a run to go on with: its agents stay, and only what it did not know is added."""
    spec = prepare(WorkflowOptions(workflow=str(file)), home, environ, configured, lambda _: held.agents).spec
    return msgspec.structs.replace(
        with_task(spec, held.variables),
        agents={role: choice for role, choice in spec.agents.items() if role not in held.agents},
        when_env={name: value for name, value in spec.when_env.items() if name not in held.when_env},
    )


def say_differences(file: Path, run: str, found: Sequence[Difference]) -> list[str]:
    """Say what changed since a run began, and what to do about it."""
    told = [f"{_said(one)}{' (it is done)' if one.done else ''}" for one in found]
    ways = ["The run continues as it was begun"]
    if any(not one.done for one in found):
        ways.append(f"`orc resume {run} --adopt-changes` takes the changes")
    if again := _do_again(file, run, found):
        ways.append(again)
    return [f"{file.name} changed since the run began: {_listed(told)}.", f"{'; '.join(ways)}."]


def say_adopted(file: Path, run: str, found: Sequence[Difference]) -> list[str]:
    """Say what a run takes, and what not."""
    lines = []
    if taken := [f"{_said(one)}{' (begins anew)' if one.begun else ''}" for one in found if not one.done]:
        lines.append(f"{file.name} is adopted: {_listed(taken)}.")
    if left := [_said(one) for one in found if one.done]:
        again = _do_again(file, run, found)
        lines.append(f"Not adopted, because it is done: {_listed(left)}{f'; {again}' if again else ''}.")
    return lines


def _do_again(file: Path, run: str, found: Sequence[Difference]) -> str:
    """Say how a step that is done is done again as the file has it now; "" when there is none."""
    step = next((one.step for one in found if one.done and one.keys), None)
    if step is None:
        return ""
    return f"`orc run --workflow {shlex.quote(str(file))} --run-id {run} --start-at-step {step}` does {step} again"


def _listed(told: list[str]) -> str:
    more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return "; ".join([*told[:SHOWN], *more])


def _said(one: Difference) -> str:
    if one.new:
        return f"new step {one.step}"
    if one.removed:
        return f"step {one.step} removed"
    return f"step {one.step}: {', '.join(one.keys)}" if one.step else ", ".join(one.keys)
