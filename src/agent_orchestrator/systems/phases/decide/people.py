"""Decides what a person's answer and directive mean; a refusal says why."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import ACTIVE, AskHuman
from agent_orchestrator.core.events import Concluded, DirectiveRefused, HumanJudged, Paused, Resumed, StopReason
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import Answer, HumanAnswered, Instruct, Resume
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.limits import TAIL_CHARS
from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.decide.settlements import list_interventions, replan, settle_finding
from agent_orchestrator.systems.phases.events import (
    Archived,
    BoundsChanged,
    CheckAbandoned,
    CheckRequested,
    PhasesEvent,
    PlanApproved,
    Rewound,
    TaskRetried,
    TasksSkipped,
)
from agent_orchestrator.systems.phases.spec import Publication
from agent_orchestrator.systems.phases.state import PhasesState, PhasesStatus, skipped_with
from agent_orchestrator.systems.phases.works import PhasesWork, TaskWork

CHANGEABLE = ("max_iterations", "max_parallel", "publish")


def resume_run(state: PhasesState, directive: Resume, now_us: int) -> list[PhasesEvent]:
    """Go on where the run stood, with the bounds that were given."""
    life = state.lifecycle
    if life.ended:
        return _refused(directive, _ended(state))
    if life.phase is Phase.ABORTING:
        return _refused(directive, "it is being aborted")
    changes = {name: value for name, value in directive.changes.items() if value is not None}
    problem = check_changes(state, changes)
    if problem is not None:
        return _refused(directive, problem)
    events: list[PhasesEvent] = [BoundsChanged(changes=changes)] if changes else []
    if life.phase is Phase.PAUSED:
        return [*events, Resumed()]
    return events or _refused(directive, "it is running already")


def check_changes(state: PhasesState, changes: dict[str, Any]) -> str | None:
    """Check options given anew, and say what is wrong with them."""
    unknown = [name for name in changes if name not in CHANGEABLE]
    if unknown:
        return f"{', '.join(unknown)} cannot be changed; these can: {', '.join(CHANGEABLE)}"
    try:
        change_bounds(state.bounds, changes)
        if "max_parallel" in changes:
            read_count(changes["max_parallel"], "max_parallel")
        if "publish" in changes:
            typed.convert(changes["publish"], Publication)
    except (InvalidValue, msgspec.ValidationError) as error:
        return str(error).rstrip(".")
    return None


def answer_question(state: PhasesState, directive: Answer, now_us: int) -> list[PhasesEvent]:
    """Approve or reject what a person was asked."""
    asking = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    if not asking:
        return _refused(directive, "nobody is asked anything now")
    if directive.unit is None and len(asking) > 1:
        return _refused(directive, f"several wait for an answer, name one: {', '.join(asking)}")
    unit = directive.unit or asking[0]
    if unit not in asking:
        return _refused(directive, f"{unit!r} waits for nobody; these do: {', '.join(asking)}")
    return _judge(state, unit, approved=directive.approved, comments=directive.comments)


def instruct_run(state: PhasesState, directive: Instruct, now_us: int) -> list[PhasesEvent]:
    """Follow what only phased runs understand: skip, retry, check, rewind, archive."""
    values = directive.values
    if directive.what == "archive":
        if not state.lifecycle.ended or state.archived:
            return _refused(directive, "only a run that has ended is archived, and only once")
        return [Archived()]
    if directive.what == "rewind":
        return _rewound(state, directive, str(values.get("to", "")))
    if directive.what not in ("skip", "retry", "check"):
        return _refused(directive, f"a phased run knows no {directive.what!r}")
    if state.lifecycle.ended:
        return _refused(directive, _ended(state))
    task = str(values.get("task", ""))
    if directive.what == "check":
        return _check(state, directive, task)
    if task not in state.plan:
        return _refused(directive, f"there is no task {task!r}; there are: {', '.join(state.plan)}")
    if task in state.completed:
        return _refused(directive, f"task {task} is completed")
    if directive.what == "skip":
        return _skip(state, directive, task, str(values.get("why", "")))
    return _retry(state, directive, task, str(values.get("comments", "")))


def _skip(state: PhasesState, directive: Instruct, task: str, why: str) -> list[PhasesEvent]:
    if task in state.skipped:
        return _refused(directive, f"task {task} is skipped already")
    event = skip(state, task, why)
    busy = [one for one in event.tasks if isinstance(state.doing.of(one), ACTIVE)]
    if busy:
        return _refused(directive, f"task {busy[0]} is at work; `orc pause --now` stops it first")
    return [event]


def _retry(state: PhasesState, directive: Instruct, task: str, comments: str) -> list[PhasesEvent]:
    effect = state.doing.of(task)
    if task in state.skipped:
        gone = [need for need in state.plan[task].needs if need in state.skipped]
        if gone:
            return _refused(directive, f"task {task} needs task {gone[0]}, which is skipped; retry that first")
        return [TaskRetried(task=task, comments=comments, also=skipped_with(state, task))]
    if isinstance(effect, AskHuman) and state.works[task].asking == "task":
        return [TaskRetried(task=task, comments=comments)]
    return _refused(directive, f"task {task} neither failed nor was skipped")


def _check(state: PhasesState, directive: Instruct, task: str) -> list[PhasesEvent]:
    active = state.active_tasks
    wanted = task or (active[0].task if active else next((one.id for one in state.pending()), next(iter(state.plan))))
    if wanted not in state.plan:
        return _refused(directive, f"there is no task {wanted!r}; there are: {', '.join(state.plan)}")
    if not state.supervisor.enabled:
        return _refused(directive, "the supervisor is switched off for this run")
    if state.stage is not PhasesStatus.EXECUTING:
        return _refused(directive, f"the run is {state.status}; the supervisor looks while tasks are executed")
    return [CheckRequested(task=wanted)]


def _rewound(state: PhasesState, directive: Instruct, to: str) -> list[PhasesEvent]:
    known = {f"checkpoint-{number:03d}": number for number in state.snapshots}
    name = to.removesuffix(".json")
    if name not in known and any(one.state_snapshot.removesuffix(".json") == name for one in state.checkpoints):
        return _refused(directive, f"{name} was not made here: it was taken over, and only its commit is known")
    if name not in known:
        return _refused(directive, f"there is no {to!r}; there are: {', '.join(known) or 'no checkpoints yet'}")
    if state.doing.active:
        return _refused(directive, "something is at work; `orc pause --now` stops it first")
    if state.archived:
        return _refused(directive, "it is archived, another run has begun")
    why = f"rewound to {name}"
    return [Rewound(to=known[name], why=why), Paused(reason=why)]


def _ended(state: PhasesState) -> str:
    back = "`orc rewind` takes it back to a checkpoint, " if state.snapshots and not state.archived else ""
    return f"it is {state.status}; {back}a new run starts anew"


def _refused(directive: Resume | Answer | Instruct, why: str) -> list[PhasesEvent]:
    return [DirectiveRefused(directive=directive.id, why=why)]


def settle_answer(state: PhasesState, outcome: HumanAnswered, now_us: int) -> list[PhasesEvent]:
    """Take the answer of a person who was asked."""
    return _judge(state, unit_of(outcome.effect), approved=outcome.approved, comments=outcome.comments)


def _judge(state: PhasesState, unit: str, *, approved: bool, comments: str) -> list[PhasesEvent]:
    """Give the answer as a fact, and what follows."""
    work = state.works[unit]
    said = comments.strip()[:TAIL_CHARS]
    judged = HumanJudged(step=unit, about=work.asking, approved=approved, comments=said)
    return [judged, *_follows(state, work, approved=approved, said=said)]


def _follows(state: PhasesState, work: PhasesWork, *, approved: bool, said: str) -> list[PhasesEvent]:
    because = f": {said}" if said else ""
    match work.asking:
        case "plan":
            return [PlanApproved()] if approved else [_failed(f"the plan was rejected{because}")]
        case "questions":
            return [] if approved else [_failed(f"the planner's questions were not answered{because}")]
        case "replan" if work.verdict is not None:
            if approved:
                return replan(work, "approved by a person")
            return list_interventions(work.verdict, f"a person rejected the change of the plan{because}")
        case "task" if isinstance(work, TaskWork):
            return [TaskRetried(task=work.task, comments=said)] if approved else [skip(state, work.task, said)]
        case "review" if not approved:
            return [_failed(f"the work was rejected{because}")]
        case "agent" if not approved and work.purpose == "repair":
            return [settle_finding(state, work, f"skipped by a person{because}")]
        case "agent" if not approved:
            return [CheckAbandoned(step=work.unit, why=f"skipped by a person{because}")]
        case _:
            return []


def skip(state: PhasesState, task: str, said: str) -> TasksSkipped:
    """Skip a task with everything that depends on it."""
    gone = {task}
    for one in state.plan.values():
        if gone & set(one.needs) and one.id not in state.completed and one.id not in state.skipped:
            gone.add(one.id)
    ordered = tuple(one for one in state.plan if one in gone)
    return TasksSkipped(tasks=ordered, why=said or state.failures.get(task) or "a person said so")


def _failed(detail: str) -> Concluded:
    return Concluded(stop=StopReason.FAILED, detail=detail)
