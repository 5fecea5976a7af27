"""Builds a phased run's effects from the spec and the state. Plain data; paths are relative to the run's home."""

from __future__ import annotations

from agent_orchestrator.core.effects import AskHuman, Checkpoint, Merge, Remote, RunAgent, RunCheck, Tree
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.phases.prompts import (
    compose_check,
    compose_planning,
    compose_repair,
    compose_scan,
    compose_task,
)
from agent_orchestrator.systems.phases.publication import tool_of
from agent_orchestrator.systems.phases.reports import TURNS
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import MilestoneWork, OnDemandWork, PhasesWork, ReviewWork, TaskWork, task_of


def _commands(state: PhasesState, work: PhasesWork) -> tuple[str, ...]:
    """List the commands that show that the task, and the whole, is done."""
    task = state.plan.get(task_of(work))
    criteria = (*(task.criteria if task is not None else ()), *state.spec.plan.criteria)
    return tuple(dict.fromkeys(one.command for one in criteria if one.command is not None))


def run_agent(state: PhasesState, work: PhasesWork, effect: EffectId) -> RunAgent:
    """Make the effect that runs the unit's agent for its purpose."""
    turn = TURNS[work.purpose]
    spec, run = state.spec, state.context.run
    return RunAgent(
        id=effect,
        unit=work.unit,
        agent=spec.choice_for(turn.role),
        role=turn.role,
        report=ReportRule(
            words={word: word for word in turn.words},
            aliases=turn.aliases,
            required=True,
            ids={"run_id": run, "step_id": work.unit},
            form=work.purpose,
        ),
        iteration=work.iteration,
        attempt=work.attempt,
        prompt_text=_prompt(state, work),
        variables=spec.variables,
        env=spec.env | {"TASK_ID": task_of(work)},
        feedback=work.feedback,
        tree=_tree(work),
        artifacts_dir=f".agents/runs/{run}/artifacts",
        session=work.session,
        allowed_commands=_commands(state, work),
        timeout_s=work.time_left_s(spec.timeout_s),
        idle_timeout_s=spec.idle_timeout_s,
    )


def _prompt(state: PhasesState, work: PhasesWork) -> str:
    match work:
        case TaskWork() if work.purpose == "execute":
            return compose_task(state, work)
        case TaskWork() | OnDemandWork():
            return compose_check(state, work.task, work.purpose, work.diff)
        case ReviewWork() if work.purpose == "scan":
            return compose_scan(state, work.iteration, work.failing)
        case ReviewWork():
            return compose_repair(state, work.findings[0])
        case _:
            return compose_planning(state)


def run_check(state: PhasesState, work: PhasesWork, effect: EffectId, criterion: str) -> RunCheck:
    """Make the effect that runs a criterion's command, or a tool that speaks to where issues and pull requests live."""
    if isinstance(work, MilestoneWork):
        tool = tool_of(state, work)
        return RunCheck(
            id=effect,
            unit=work.unit,
            command=" ".join(tool.argv[:3]),
            argv=tool.argv,
            stdin=tool.stdin,
            remote=Remote(name=state.spec.remote, address=state.spec.address) if state.spec.address else None,
            timeout_s=300,
        )
    criteria = state.plan[work.task].criteria if isinstance(work, TaskWork) else state.spec.plan.criteria
    command = next(one.command for one in criteria if one.key == criterion)
    return RunCheck(id=effect, unit=work.unit, command=command or "", tree=_tree(work))


def ask_human(state: PhasesState, work: PhasesWork, effect: EffectId, question: str) -> AskHuman:
    """Make a question to a person."""
    return AskHuman(id=effect, unit=work.unit, question=question, after=work.agent_launch or effect)


def save_tree(state: PhasesState, work: PhasesWork, effect: EffectId, at_us: int) -> Checkpoint:
    """Make the effect that keeps the tree, or commits it on the branch, as the purpose says."""
    run, spec, purpose = state.context.run, state.spec, work.purpose
    title = _title(state, work)
    message = f"{title}\n\nOrc-Run: {run}\nOrc-Task: {task_of(work)}\n"
    if purpose == "checkpoint":
        message += f"Orc-Checkpoint: {task_of(work)}\n"
    message += f"Orc-Effect: {effect}\n"
    kept = isinstance(work, TaskWork) and purpose == "kept"
    return Checkpoint(
        id=effect,
        unit=work.unit,
        ref=f"refs/orc/{run}/{work.unit}/{purpose}",
        message=message,
        at_us=at_us,
        tree=_tree(work),
        start=work.start if isinstance(work, TaskWork) and work.branch else state.start,
        branch_message=None if purpose == "work" else message,
        branch=spec.branch,
        empty=purpose == "checkpoint",
        of=work.snapshot if kept and isinstance(work, TaskWork) else None,
    )


def merge(state: PhasesState, work: TaskWork, effect: EffectId, at_us: int) -> Merge:
    """Make the effect that brings a task's branch into the run's."""
    run, task = state.context.run, work.task
    trailers = f"Orc-Run: {run}\nOrc-Task: {task}\nOrc-Checkpoint: {task}\nOrc-Effect: {effect}\n"
    message = f"Merge task {task}: {state.plan[task].name}\n\n{trailers}"
    return Merge(id=effect, unit=work.unit, branch=work.branch, into=state.spec.branch, message=message, at_us=at_us)


def _tree(work: PhasesWork) -> Tree | None:
    if isinstance(work, TaskWork) and work.branch:
        return Tree(branch=work.branch, start=work.start or "")
    return None


def _title(state: PhasesState, work: PhasesWork) -> str:
    if isinstance(work, ReviewWork):
        return f"Review: {_line(work.findings[0].issue) if work.findings else 'mended by the scanner'}"
    if work.purpose == "base":
        return f"Begin: {state.spec.plan.name}"
    task = task_of(work)
    name = state.plan[task].name if task in state.plan else task
    if work.purpose == "fix" and work.verdict is not None:
        fixed = [one.details or one.recommendation for one in work.verdict.conflicts]
        return f"Auto-fix in task {task}: {_line('; '.join(part for part in fixed if part) or name)}"
    return f"Left by task {task}: {name}" if work.purpose == "left" else f"Task {task}: {name}"


def _line(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return clip(first, 60)
