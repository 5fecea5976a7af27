"""Says what follows by itself: the next thing of a unit at work, the next task, the next phase, the review, the end.

A unit's `due` names its next step; the table below says how each begins. Nothing here looks at what is in flight but to
stay silent while a unit is busy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_orchestrator.core.events import Concluded, Ended, HumanAsked, MergeStarted, Paused, StopReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.units import say_count, was_or_were
from agent_orchestrator.systems.phases.changes import say_change
from agent_orchestrator.systems.phases.decide.programs import record_as_file
from agent_orchestrator.systems.phases.decide.settlements import replan
from agent_orchestrator.systems.phases.events import (
    AgentStarted,
    CheckStarted,
    IterationFinished,
    PhaseCompleted,
    PhasesEvent,
    PlanApproved,
    ReviewPassed,
    ReviewStarted,
    SavingStarted,
    TaskBlocked,
    TaskFailed,
    TasksSkipped,
    TaskStarted,
)
from agent_orchestrator.systems.phases.publication import say_published
from agent_orchestrator.systems.phases.spec import PlanTask, overlaps
from agent_orchestrator.systems.phases.state import NEEDS_GONE, PhasesState, PhasesStatus
from agent_orchestrator.systems.phases.works import CHECK, MilestoneWork, PhasesWork, ReviewWork, TaskWork

Starter = Callable[[PhasesState, PhasesWork], list[PhasesEvent]]

REPLANS_MAX = 3
"""The most changes of the plan before one task: a supervisor that is never content must not hold it up."""


def advance(state: PhasesState, now_us: int) -> Sequence[PhasesEvent]:
    """Give the next facts, or none."""
    life = state.lifecycle
    if life.phase is Phase.ABORTING:
        return () if state.doing.active else [Ended(stop=StopReason.ABORTED, detail=life.detail)]
    if not life.running:
        return ()
    if state.conclusion is not None:
        stop, detail = state.conclusion
        return () if state.doing.active else [Ended(stop=stop, detail=detail)]
    if state.trouble:
        return () if state.doing.active else [Paused(reason=state.trouble, stop=StopReason.WAITING_ON_HUMAN)]
    if state.spec.remote and not state.spec.publishes and (begun := _begun_unasked(state)) is not None:
        return _record(state, begun)
    if state.stage is PhasesStatus.EXECUTING and state.wanted_checks and CHECK not in state.works:
        if state.doing.active:
            return ()  # The tree is looked at when nobody works on it.
        return [AgentStarted(effect=state.name_effect(CHECK, 0, 1, "on_demand"), step=CHECK, purpose="on_demand")]
    for work in [state.works[CHECK]] if CHECK in state.works else state.works.values():
        if work.due is not None:
            return _STARTS[work.due](state, work)
    return _schedule(state)


def _begun_unasked(state: PhasesState) -> MilestoneWork | None:
    """Find what 0.1.0 began to publish without being asked: it ends as a file, before anything of it is started again."""
    found = (work for work in state.works.values() if isinstance(work, MilestoneWork))
    return next((work for work in found if state.doing.of(work.unit) is not None), None)


def _schedule(state: PhasesState) -> list[PhasesEvent]:
    """Begin the next task, phase or review, when no unit has anything to begin."""
    if state.stage is PhasesStatus.EXECUTING:
        return _next_task(state)
    if state.stage is PhasesStatus.REVIEWING and not state.works:
        done = len(state.completed)
        told = f"{done} of {say_count(len(state.plan), 'task')} {was_or_were(done)} completed"
        return [Ended(stop=StopReason.COMPLETED, detail=told)]
    return []


def _next_task(state: PhasesState) -> list[PhasesEvent]:
    busy = state.active_tasks
    blocked = [work.task for work in state.works.values() if isinstance(work, TaskWork) and work.blocked]
    if len(busy) >= state.max_parallel or len(busy) + len(blocked) < len(state.works):
        return []
    waiting = [state.plan[task] for task in blocked]
    waiting += [task for task in state.pending() if task.phase == state.phase]
    for task in waiting:
        if any(need in state.plan and need not in state.completed for need in task.needs):
            continue
        holder = _holder(state, task, busy)
        if holder is None:
            return [_started(state, task.id)]
        if task.id not in blocked:
            return [TaskBlocked(task=task.id, by=holder)]
    if busy:
        return []
    if waiting:
        return [TasksSkipped(tasks=(waiting[0].id,), why=NEEDS_GONE)]
    if state.phase < len(state.spec.plan.phases):
        return [PhaseCompleted(phase=state.phase, completed=any(t.id in state.completed for t in state.tasks_of(state.phase)))]
    if not state.completed:
        return [Concluded(stop=StopReason.FAILED, detail=f"no task was completed: all {len(state.plan)} were skipped")]
    return [ReviewStarted()]


def _started(state: PhasesState, task: str) -> TaskStarted:
    """Start a task in the run's own tree, or, where tasks may run side by side, on a branch of its own."""
    then = _first_step(state, task)
    if state.max_parallel == 1:
        return TaskStarted(task=task, then=then)
    times = state.starts.get(task, 0)
    again = f"-{times + 1}" if times else ""
    return TaskStarted(task=task, branch=f"{state.spec.branch}--{task}{again}", start=state.start or "", then=then)


def _first_step(state: PhasesState, task: str) -> str:
    """Let the supervisor look first, unless it is off, or has changed the plan often enough for this task."""
    supervision = state.spec.plan.supervision
    looks = supervision.enabled and supervision.before and state.replans.get(task, 0) < REPLANS_MAX
    return "pre" if looks else "execute"


def _holder(state: PhasesState, task: PlanTask, busy: list[TaskWork]) -> str | None:
    """Find the task that this one waits for: only tasks that declare their files, and none in common, run together."""
    for other in busy:
        theirs = state.plan[other.task].files
        if not task.files or not theirs or any(overlaps(one, two) for one in task.files for two in theirs):
            return other.task
    return None


# How each step of a unit begins


def _agent(purpose: str) -> Starter:
    def start(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
        effect = state.name_effect(work.unit, work.iteration, 1, purpose)
        return [AgentStarted(effect=effect, step=work.unit, purpose=purpose, iteration=work.iteration)]

    return start


def _again(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    """Launch the same purpose, iteration and attempt once more."""
    effect = state.name_effect(work.unit, work.iteration, work.attempt, work.purpose)
    return [AgentStarted(effect=effect, step=work.unit, purpose=work.purpose, iteration=work.iteration, attempt=work.attempt)]


def _execute(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    assert isinstance(work, TaskWork), "a task is executed"
    made, most = work.iteration - work.first, state.bounds.max_iterations
    if made >= most:
        said = f": {work.feedback[-1].get('error', '')}" if work.feedback else ""
        return [TaskFailed(task=work.task, why=f"{made} of {say_count(most, 'iteration')} {was_or_were(made)} made{said}")]
    number = work.iteration + 1
    effect = state.name_effect(work.unit, number, 1, "execute")
    return [AgentStarted(effect=effect, step=work.unit, purpose="execute", iteration=number)]


def _criteria(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    criteria = state.plan[work.task].criteria if isinstance(work, TaskWork) else state.spec.plan.criteria
    assert isinstance(work, TaskWork | ReviewWork), "a task and the whole have criteria"
    one = criteria[work.at]
    purpose = "criterion" if isinstance(work, TaskWork) else "global"
    effect = state.name_effect(work.unit, work.iteration, 1, purpose)
    return [CheckStarted(effect=effect, step=work.unit, purpose=purpose, criterion=one.key)]


def _judge(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    """End the iteration, whose criteria are all known, or let the supervisor have the last word."""
    assert isinstance(work, TaskWork), "a task is judged"
    if work.errors:
        return [_iterated(work, "; ".join(work.errors))]
    looked = work.fixed or work.verdict is not None
    if state.supervisor.enabled and state.spec.plan.supervision.after and not looked:
        return _save("work")(state, work)
    return [_iterated(work, "")]


def _iterated(work: TaskWork, error: str) -> IterationFinished:
    return IterationFinished(task=work.task, iteration=work.iteration, met=dict(work.met), error=error[:2_000])


def _save(purpose: str) -> Starter:
    def start(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
        return [SavingStarted(effect=state.name_effect(work.unit, work.iteration, 1, purpose), step=work.unit, purpose=purpose)]

    return start


def _merge(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    return [MergeStarted(effect=state.name_effect(work.unit, work.iteration, 1, "merge"), step=work.unit)]


def _replan(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    verdict = work.verdict
    assert verdict is not None, "a verdict asks for another plan"
    if state.spec.yes:
        return replan(work, "approved with --yes")
    changes = "; ".join(say_change(change) for change in verdict.changes)
    found = "; ".join(f"{one.type}: {one.details or one.recommendation}" for one in verdict.conflicts)
    return _asked(state, work, "replan", f"The supervisor wants another plan ({found}). Change it so: {changes}?")


def _approve(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    if state.spec.yes:
        return [PlanApproved()]
    plan = state.spec.plan
    size = f"{say_count(len(plan.phases), 'phase')}, {say_count(len(plan.tasks), 'task')}"
    told = f" It publishes {say_published(plan, state.spec.branch, state.spec)}." if state.spec.publishes else ""
    return _asked(state, work, "plan", f"Execute {plan.name}: {size}? `orc phases plan` shows them.{told}")


def _questions(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    asked = " ".join(f"{number}. {text}" for number, text in enumerate(state.questions, 1))
    return _asked(state, work, "questions", f"The planner asks: {asked} Answer in the comments.")


def _failed(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    return _asked(
        state,
        work,
        "task",
        f"Task {work.unit} failed: {_bare(work.trouble)}. Approve to try again, reject to skip it, or abort the run.",
    )


def _stuck(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    what = work.purpose.replace("_", " ")
    why = _bare(work.trouble)
    return _asked(state, work, "agent", f"The agent ({what}) failed: {why}. Approve to try again, reject to go on without it.")


def _bare(trouble: str) -> str:
    """Give a message as a part of a sentence: some are whole ones."""
    return trouble.rstrip(".")


def _unmet(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    assert isinstance(work, ReviewWork), "the whole is reviewed"
    said = "; ".join(one.issue for one in work.failing)
    return _asked(state, work, "review", f"In the end {said}. Approve to check again, reject to fail the run.")


def _asked(state: PhasesState, work: PhasesWork, about: str, question: str) -> list[PhasesEvent]:
    effect = state.name_effect(work.unit, work.iteration, work.attempt, "human")
    return [HumanAsked(effect=effect, step=work.unit, about=about, question=question, after=work.agent_launch)]


def _tool(purpose: str) -> Starter:
    def start(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
        if not state.spec.publishes:
            return _record(state, work)
        effect = state.name_effect(work.unit, 0, 1, purpose)
        return [CheckStarted(effect=effect, step=work.unit, purpose=purpose)]

    return start


def _record(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    assert isinstance(work, MilestoneWork), "a milestone is recorded"
    return [record_as_file(state, work, "")]


def _reviewed(state: PhasesState, work: PhasesWork) -> list[PhasesEvent]:
    assert isinstance(work, ReviewWork), "the whole is reviewed"
    return [ReviewPassed(left="; ".join(work.left))]


_STARTS: dict[str, Starter] = {
    "base": _save("base"),
    "plan": _agent("plan"),
    "questions": _questions,
    "approve": _approve,
    "pre": _agent("pre_task"),
    "execute": _execute,
    "again": _again,
    "criteria": _criteria,
    "judge": _judge,
    "post": _agent("post_task"),
    "work": _save("work"),
    "kept": _save("kept"),
    "fix": _save("fix"),
    "replan": _replan,
    "checkpoint": _save("checkpoint"),
    "merge": _merge,
    "left": _save("left"),
    "failed": _failed,
    "stuck": _stuck,
    "scan": _agent("scan"),
    "repair": _agent("repair"),
    "mend": _save("mend"),
    "unmet": _unmet,
    "reviewed": _reviewed,
    "push": _tool("push"),
    "look": _tool("look"),
    "create": _tool("create"),
    "record": _record,
}
