"""The print-outs of a phased run: the seed's state file, its checkpoints, locks, learnings and milestones; and its summary.

Times are those of facts, so that the same state prints the same files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman, RunAgent, Wait
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.files import DRAFT, beside
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.systems.phases.bounds import say_elapsed, say_money, show_cost, show_time
from agent_orchestrator.systems.phases.publication import milestone_files
from agent_orchestrator.systems.phases.spec import EXECUTOR, FIXER, SCANNER, SUPERVISOR, Lesson, PhasesSpec
from agent_orchestrator.systems.phases.state import (
    CheckpointEntry,
    CompletedTask,
    Milestone,
    PhasesState,
    PhasesStatus,
    Supervisor,
)
from agent_orchestrator.systems.phases.works import REVIEW, PhasesWork, ReviewWork, TaskWork, task_of

FOLDER = ".claude"
STATE_FILE = "agent-state.json"
LEARNINGS = f"{FOLDER}/learnings.jsonl"

AGENT_TYPES = {
    "execute": EXECUTOR,
    "pre_task": SUPERVISOR,
    "post_task": SUPERVISOR,
    "on_demand": SUPERVISOR,
    "scan": SCANNER,
    "repair": FIXER,
}
"""The seed's name for the agent of each purpose; the planner has none there."""
LIMITS = {"run.cost_usd": "Cost", "run.wall_s": "Time", "run.tokens": "Tokens"}
"""Limits as the seed's warnings call them."""


class OrchestratorEntry(msgspec.Struct, kw_only=True):
    """`orchestrator` in the state file."""

    status: PhasesStatus
    task_doc: str
    current_phase: int
    total_phases: int
    current_task: str
    ralph_iteration: int
    outer_ralph: bool
    start_time: str
    end_time: str | None = None


class AgentEntry(msgspec.Struct, kw_only=True):
    """One entry of `active_agents`."""

    type: str
    task: str
    started: str
    iteration: int
    status: str


class PendingTask(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `pending_tasks`."""

    phase: int
    task: str
    name: str


class SafetyBounds(msgspec.Struct, kw_only=True):
    """`safety_bounds` in the state file."""

    max_iterations_per_task: int
    max_cost: str
    max_time: str
    cost_so_far: str
    elapsed_time: str
    warnings: list[str]


class AgentStateDocument(msgspec.Struct, kw_only=True):
    """`agent-state.json`: these fields, in this order."""

    orchestrator: OrchestratorEntry
    supervisor: Supervisor
    active_agents: list[AgentEntry]
    completed_tasks: list[CompletedTask]
    pending_tasks: list[PendingTask]
    safety_bounds: SafetyBounds
    learnings: list[Lesson]
    milestones: list[Milestone]
    checkpoints: list[CheckpointEntry]


def folder_of(state: PhasesState) -> str:
    """Give the folder of a run's own files: in the archive, once another run has begun."""
    return f"{FOLDER}/archive/{state.context.run}" if state.archived else FOLDER


def checkpoint_name(number: int) -> str:
    """Give the file name of a checkpoint."""
    return f"checkpoint-{number:03d}.json"


def documents(state: PhasesState, now_us: int) -> Iterator[Document]:
    """Give the run's print-outs."""
    folder = folder_of(state)
    yield Document(path=f"{folder}/{STATE_FILE}", body=state_document(state), checked=True)
    yield Document(path=f"{folder}/locks.json", body=locks(state))
    for number, snapshot in state.snapshots.items():
        yield Document(path=f"{folder}/{checkpoint_name(number)}", body=snapshot.body, once=True)
    newest = state.snapshots.get(number_of(state.checkpoints[-1].state_snapshot)) if state.checkpoints else None
    if newest is not None:  # Those of an imported run are where they were made.
        yield Document(path=f"{folder}/checkpoint.json", body=newest.body)
    for name, body in state.files.items():
        yield Document(path=f"{folder}/milestones/{name}", body=body)
    if state.learnings:
        lines = [msgspec.json.encode(lesson) for lesson in state.learnings]
        yield Document(path=LEARNINGS, body=b"\n".join(lines) + b"\n", append=True)


def files(spec: PhasesSpec, run: str) -> Iterator[str]:
    """List the files of `.claude/` by their names, and where those of an ended run go."""
    named = (STATE_FILE, "locks.json", "checkpoint.json", "checkpoint-[0-9][0-9][0-9]*.json")
    yield from (*(f"{FOLDER}/{name}" for name in named), LEARNINGS, *beside(FOLDER))
    yield from (f"{FOLDER}/milestones/{name}" for name in milestone_files(spec))
    yield from (f"{FOLDER}/milestones/.*{DRAFT}", f"{FOLDER}/archive/{run}/", f".agents/runs/{run}/")


def number_of(name: str) -> int:
    """Give the number of a checkpoint's file: `checkpoint-002.json` is 2."""
    return int(name.removeprefix("checkpoint-").removesuffix(".json"))


def state_document(state: PhasesState) -> AgentStateDocument:
    """Make agent-state.json."""
    phase, task, iteration = position(state)
    bounds, budget = state.bounds, state.doing.budget.run
    return AgentStateDocument(
        orchestrator=OrchestratorEntry(
            status=state.status,
            task_doc=state.spec.document,
            current_phase=phase,
            total_phases=len(state.spec.plan.phases),
            current_task=task,
            ralph_iteration=iteration,
            outer_ralph=is_looping(state),
            start_time=stamp(state.started_us),
            end_time=stamp(state.ended_us) if state.ended_us is not None else None,
        ),
        supervisor=state.supervisor,
        active_agents=[agent for work in state.works.values() if (agent := active_agent(state, work)) is not None],
        completed_tasks=list(state.completed.values()),
        pending_tasks=[_pending(task.phase, task.id, task.name) for task in state.pending()],
        safety_bounds=SafetyBounds(
            max_iterations_per_task=bounds.max_iterations,
            max_cost=show_cost(bounds, budget.cost_usd),
            max_time=show_time(bounds, budget.wall_s),
            cost_so_far=say_money(state.cost_usd, unmetered=state.unmetered),
            elapsed_time=say_elapsed(state.elapsed_at(state.updated_us)),
            warnings=warnings(state),
        ),
        learnings=state.learnings,
        milestones=state.milestones,
        checkpoints=state.checkpoints,
    )


@lru_cache(maxsize=4096)
def _pending(phase: int, task: str, name: str) -> PendingTask:
    """Make an entry that all checkpoints share: each lists every task that was still to be done."""
    return PendingTask(phase=phase, task=task, name=name)


def freeze_document(state: PhasesState) -> AgentStateDocument:
    """Make agent-state.json as it is now and stays: lists are copied, and their entries never change."""
    made = state_document(state)
    supervisor = msgspec.structs.replace(made.supervisor, interventions=list(made.supervisor.interventions))
    return msgspec.structs.replace(
        made,
        supervisor=supervisor,
        learnings=list(made.learnings),
        milestones=list(made.milestones),
        checkpoints=list(made.checkpoints),
    )


def position(state: PhasesState) -> tuple[int, str, int]:
    """Give the phase at work, the task of how many, and its iteration; of several tasks the lowest id speaks."""
    last = len(state.spec.plan.phases) - 1
    if state.stage is PhasesStatus.PLANNING:
        return 0, f"0/{len(state.tasks_of(0))}", 0
    if state.stage is not PhasesStatus.EXECUTING:
        review, total = state.works.get(REVIEW), len(state.tasks_of(last))
        return last, f"{total}/{total}", review.iteration if review is not None else 0
    active = state.active_tasks
    # A task of an earlier phase may be wanted again while one of a later phase is at work.
    phase = state.plan[active[0].task].phase if active else min(state.phase, last)
    tasks = [task.id for task in state.tasks_of(phase)]
    if active:
        return phase, f"{tasks.index(active[0].task) + 1}/{len(tasks)}", active[0].iteration
    open_tasks = (at for at, task in enumerate(tasks, 1) if task not in state.completed and task not in state.skipped)
    return phase, f"{next(open_tasks, len(tasks))}/{len(tasks)}", 0


def is_looping(state: PhasesState) -> bool:
    """Tell whether the outer loop is running."""
    review = state.works.get(REVIEW)
    return isinstance(review, ReviewWork) and review.looping and not state.lifecycle.ended


def active_agent(state: PhasesState, work: PhasesWork) -> AgentEntry | None:
    """Give the unit's agent, if it has one that is running, parked, backing off or waiting for a person."""
    if isinstance(work, TaskWork) and work.blocked:
        return AgentEntry(type=EXECUTOR, task=work.task, started=stamp(work.locked_us), iteration=0, status="blocked")
    kind, effect = AGENT_TYPES.get(work.purpose), state.doing.of(work.unit)
    if kind is None or work.agent_since_us is None:
        return None
    if isinstance(effect, RunAgent):
        status = "waiting" if state.doing.is_held(effect.id) else "in_progress"
    elif isinstance(effect, Wait | AskHuman):
        status = "waiting"
    else:
        return None
    return AgentEntry(
        type=kind,
        task=task_of(work),
        started=stamp(work.agent_since_us),
        iteration=work.iteration,
        status=status,
    )


def warnings(state: PhasesState) -> list[str]:
    """List what a person should know: what was skipped, what was noted, and why nothing goes on."""
    return [*remarks(state), *hindrances(state)]


def remarks(state: PhasesState) -> list[str]:
    """List what was skipped, what was noted, what waits for money or an account."""
    told = [f"Task {task} was skipped: {why}" for task, why in state.skipped.items()]
    told += [f"{LIMITS.get(what, what)} at {percent}% of limit" for what, percent in state.doing.warned.items()]
    told += [f"{unit} waits: {hold.told}" for unit, hold in state.doing.holds.items()]
    return told + state.warnings


def hindrances(state: PhasesState) -> list[str]:
    """Say why units rest that nothing is wrong with: a person is asked, a try is over and the next one is due, a pause."""
    told = []
    for effect in state.doing:
        if isinstance(effect, AskHuman):
            told.append(f"{effect.unit} waits for a person: {effect.question}")
        elif isinstance(effect, Wait):
            told.append(f"{effect.unit} waits to be tried again: {effect.reason}")
    life = state.lifecycle
    if life.phase is Phase.PAUSED and life.detail:
        told.append(f"Paused: {life.detail}")
    return told


def locks(state: PhasesState) -> dict[str, Any]:
    """Make locks.json: who holds which declared file, and since when."""
    held: dict[str, Any] = {}
    for work in state.works.values():
        if isinstance(work, TaskWork) and work.task in state.plan and not work.blocked:
            for path in state.plan[work.task].files:
                held[path] = {"agent": f"{EXECUTOR}:{work.task}", "timestamp": stamp(work.locked_us)}
    return held


DOING_SHOWN = 5


def summary(state: PhasesState) -> Summary:
    """Give the run in one line."""
    life = state.lifecycle
    status, stop, detail = life.status, life.stop, life.detail
    asking = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    if life.running and asking and len(asking) == len(state.doing):
        status, stop, detail = "waiting", StopReason.WAITING_ON_HUMAN, f"approval: {', '.join(asking)}"
    elif life.running:
        detail = state.stage.value
    return Summary(
        status=status,
        stop=stop,
        detail=detail,
        done=len(state.completed),
        total=len(state.plan),
        failed=len(state.failures),
        doing=tuple(effect.unit for effect in list(state.doing)[:DOING_SHOWN]),
    )


def details(state: PhasesState) -> dict[str, Any]:
    """Give all that the state file does not carry."""
    return {
        **state.lifecycle.details(),
        "status": state.status.value,
        "branch": state.spec.branch,
        "start": state.start,
        "pull_request": state.pull_request or None,
        "skipped": dict(state.skipped),
        "failures": dict(state.failures),
        "warnings": warnings(state),
        "questions": list(state.questions),
        "checks_wanted": list(state.wanted_checks),
        "archived": state.archived,
        "doing": state.doing.details(),
        "plan": [msgspec.to_builtins(task) for task in state.plan.values()],
        "steps": {unit: _step(state, unit) for unit in state.steps},
    }


def _step(state: PhasesState, unit: str) -> dict[str, Any]:
    work, record = state.works.get(unit), state.records.get(unit) or UnitRecord()
    return {**record.details(), "summary": "", "due": work.due if work is not None else None}
