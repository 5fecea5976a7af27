"""Facts about tasks, the supervisor and the plan: started, looked at, iterated, failed, skipped, completed."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.events import HumanJudged
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.bounds import say_money, say_spent
from agent_orchestrator.systems.phases.changes import change_plan
from agent_orchestrator.systems.phases.documents import checkpoint_name, freeze_document
from agent_orchestrator.systems.phases.evolve.marks import check_globals, drop_work, next_command, warn
from agent_orchestrator.systems.phases.spec import PlanChange
from agent_orchestrator.systems.phases.state import (
    CheckpointEntry,
    CheckpointSnapshot,
    CompletedTask,
    PhasesState,
    as_intervention,
    because_of,
)
from agent_orchestrator.systems.phases.supervision import AUTO_FIX, PASS, RE_PLAN, REFUSE
from agent_orchestrator.systems.phases.works import OnDemandWork, PhasesWork, ReviewWork, TaskWork


def _task_started(state: PhasesState, event: e.TaskStarted, at_us: int) -> None:
    state.starts[event.task] = state.starts.get(event.task, 0) + 1
    work = TaskWork(
        unit=event.task,
        task=event.task,
        locked_us=at_us,
        due=event.then or _then_in_0_1_0(state, event.task),
        notes=[state.comments.pop(event.task)] if event.task in state.comments else [],
        branch=event.branch,
        start=event.start or None,
    )
    state.open_work(work)


def _task_blocked(state: PhasesState, event: e.TaskBlocked, at_us: int) -> None:
    state.open_work(TaskWork(unit=event.task, task=event.task, locked_us=at_us, blocked=True))


def _then_in_0_1_0(state: PhasesState, task: str) -> str:
    """Say what a task began with, for journals that do not say it: never changed."""
    supervision = state.spec.plan.supervision
    looks = supervision.enabled and supervision.before and state.replans.get(task, 0) < 3
    return "pre" if looks else "execute"


def _criteria_reported(state: PhasesState, event: e.CriteriaReported, at_us: int) -> None:
    work = _task(state, event.task)
    criteria = state.plan[event.task].criteria
    work.status, work.said = event.status, event.criteria
    if event.status != "SUCCESS":
        work.errors.append(f"the agent reported {event.status}")
    for one in criteria:
        if one.command is None:
            work.met[one.key] = event.criteria.get(one.key, False)
            if not work.met[one.key]:
                said = "is reported as not met" if one.key in event.criteria else "is not in the report"
                work.errors.append(f"the criterion {one.key} {said}")
    at = next_command(criteria, 0)
    work.at, work.due = at or 0, "criteria" if at is not None else "judge"


def _iteration_finished(state: PhasesState, event: e.IterationFinished, at_us: int) -> None:
    work = _task(state, event.task)
    work.met = dict(event.met)
    if not event.error:
        work.failed_in_a_row, work.due = 0, "checkpoint"
        return
    work.failed_in_a_row += 1
    unmet = [key for key, met in event.met.items() if not met]
    told: dict[str, Any] = {"iteration": event.iteration, "error": event.error, "not_met": unmet}
    work.tell({**told, "checks": work.checks} if work.checks else told)
    work.verdict, work.fixed, work.due = None, False, "execute"


def _task_failed(state: PhasesState, event: e.TaskFailed, at_us: int) -> None:
    work = _task(state, event.task)
    state.doing.drop(work.unit)
    work.due, work.trouble, work.purpose = "failed", event.why, "execute"
    work.agent_since_us = work.agent_since_us or at_us
    state.failures[event.task] = event.why


def _task_retried(state: PhasesState, event: e.TaskRetried, at_us: int) -> None:
    for task in (event.task, *event.also):
        state.skipped.pop(task, None)
        state.failures.pop(task, None)
    state.phase = first_open_phase(state)
    work = state.works.get(event.task)
    if isinstance(work, TaskWork):
        state.doing.drop(work.unit)
        work.asking, work.trouble, work.attempt, work.agent_since_us = "", "", 1, None
        work.first, work.failed_in_a_row, work.due = work.iteration, 0, "execute"
        if event.comments:
            work.notes.append(event.comments)
    elif event.comments:
        before = state.comments.get(event.task)
        state.comments[event.task] = f"{before}\n{event.comments}" if before else event.comments


def _tasks_skipped(state: PhasesState, event: e.TasksSkipped, at_us: int) -> None:
    root = event.tasks[0]
    for task in event.tasks:
        state.skipped[task] = event.why if task == root else because_of(root)
        work = drop_work(state, task)
        if isinstance(work, TaskWork) and work.iteration and not work.branch:
            # What it left in the tree is committed by itself, so that no other task's changes are mixed with it.
            state.open_work(PhasesWork(unit=task, due="left", iteration=work.iteration))


def _task_completed(state: PhasesState, event: e.TaskCompleted, at_us: int) -> None:
    work = drop_work(state, event.task)
    assert isinstance(work, TaskWork), "a task at work was completed"
    task = state.plan[event.task]
    state.completed[task.id] = CompletedTask(
        task=task.id,
        name=task.name,
        completed=stamp(at_us),
        iterations=work.iteration,
        time_elapsed=say_spent(work.worked_us),
        cost=say_money(work.cost_usd, unmetered=work.unmetered),
        files_modified=list(event.files),
        success_criteria_met={one.key: work.met.get(one.key, True) for one in task.criteria},
    )
    state.start, state.numbered = event.git_sha, event.number
    state.checkpoints.append(
        CheckpointEntry(
            timestamp=stamp(at_us),
            phase=task.phase,
            task=task.id,
            git_sha=event.git_sha,
            state_snapshot=checkpoint_name(event.number),
        )
    )
    state.snapshots[event.number] = _snapshot(state, event.git_sha)


def _snapshot(state: PhasesState, git_sha: str) -> CheckpointSnapshot:
    """Keep the state file as it is now, with its own checkpoint in it, and what it takes to go back."""
    body = freeze_document(state)
    return CheckpointSnapshot(
        body=body,
        git_sha=git_sha,
        phase=state.phase,
        plan=tuple(state.plan.values()),
        completed=tuple(state.completed.values()),
        skipped=tuple(state.skipped.items()),
        supervisor=body.supervisor,
        learnings=len(state.learnings),
        milestones=len(state.milestones),
        checkpoints=tuple(state.checkpoints),
    )


def first_open_phase(state: PhasesState) -> int:
    """Give the index of the first phase that has something left to do."""
    open_phases = [task.phase for task in state.plan.values() if task.id not in state.completed and task.id not in state.skipped]
    return min([*open_phases, state.phase])


def _task(state: PhasesState, task: str) -> TaskWork:
    work = state.works[task]
    assert isinstance(work, TaskWork), f"{task} is at work"
    return work


def _supervisor_checked(state: PhasesState, event: e.SupervisorChecked, at_us: int) -> None:
    supervisor = state.supervisor
    supervisor.checks_performed += 1
    supervisor.conflicts_detected += len(event.conflicts)
    supervisor.re_plans_triggered += event.action == RE_PLAN
    supervisor.last_check = stamp(at_us)
    work = state.works[event.step]
    work.verdict = event
    if event.action == AUTO_FIX:
        work.due = "kept" if event.check_type == "post_task" else "fix"
    elif event.action == RE_PLAN:
        work.due = "replan"
    else:
        if event.action == REFUSE and isinstance(work, TaskWork):
            for key in event.denied:
                work.met[key] = False
                work.errors.append(f"the supervisor does not confirm {key}" + (f": {event.summary}" if event.summary else ""))
        _go_on(state, work)


def _go_on(state: PhasesState, work: PhasesWork) -> None:
    """Go on with what was to follow the check."""
    if isinstance(work, OnDemandWork):
        drop_work(state, work.unit)
    elif work.purpose == "pre_task":
        work.verdict, work.due = None, "execute"
    else:
        work.due = "judge"


def _intervened(state: PhasesState, event: e.Intervened, at_us: int) -> None:
    state.supervisor.interventions.append(as_intervention(event, at_us))
    state.supervisor.auto_fixes_applied += event.fixed


def _plan_changed(state: PhasesState, event: e.PlanChanged, at_us: int) -> None:
    apply_changes(state, event.changes)
    for work in list(state.works.values()):
        verdict = work.verdict
        if verdict is None or verdict.action != RE_PLAN:
            continue
        state.doing.drop(work.unit)
        if not isinstance(work, TaskWork):
            drop_work(state, work.unit)
        elif verdict.check_type == "pre_task":
            # Another task may come first now: it is looked at again when its turn comes.
            state.replans[work.task] = state.replans.get(work.task, 0) + 1
            drop_work(state, work.unit)
        else:
            again = work.task in verdict.affected or any(change.task == work.task for change in event.changes)
            if again:
                work.errors.append(f"the plan was changed ({event.why})")
            work.due = "judge"


def apply_changes(state: PhasesState, changes: tuple[PlanChange, ...]) -> None:
    """Change the plan; a task that is removed is at work no longer."""
    state.plan = change_plan(state.plan, changes)
    for change in changes:
        if change.action == "remove":
            drop_work(state, change.task)
            state.skipped.pop(change.task, None)


def _human_judged(state: PhasesState, event: HumanJudged, at_us: int) -> None:
    work = state.works[event.step]
    state.doing.drop(event.step)
    work.asking = ""
    if event.about == "questions":
        state.answers = event.comments
        work.due = "approve"
    elif event.about == "replan" and not event.approved:
        if event.comments:
            work.notes.append(event.comments)
        _go_on(state, work)
    elif event.about == "task" and isinstance(work, TaskWork) and event.comments and not event.approved:
        state.comments[work.task] = event.comments  # Told, should the task be tried again after all.
    elif event.about in ("plan", "review") and event.comments and not event.approved:
        state.rejected = event.comments
    elif event.about == "agent":
        work.attempt, work.trouble, work.due = 1, "", "again"
        if event.comments:
            work.notes.append(event.comments)
    elif isinstance(work, ReviewWork):
        check_globals(state, work)


def _agent_gave_up(state: PhasesState, event: e.AgentGaveUp, at_us: int) -> None:
    work = state.works[event.step]
    state.doing.drop(event.step)
    work.trouble, work.due = event.why, "stuck"


def _check_abandoned(state: PhasesState, event: e.CheckAbandoned, at_us: int) -> None:
    work = state.works[event.step]
    state.doing.drop(event.step)
    work.due, work.agent_since_us = None, None
    warn(state, f"Without the {work.purpose} of {work.unit}: {event.why}")
    if isinstance(work, OnDemandWork):
        drop_work(state, event.step)
    elif isinstance(work, ReviewWork):
        check_globals(state, work)
    elif work.purpose == "post_task":
        work.verdict, work.due = _nothing_found(work.unit), "judge"
    else:
        work.due = "execute" if work.purpose == "pre_task" else "approve"


def _nothing_found(task: str) -> e.SupervisorChecked:
    return e.SupervisorChecked(step=task, task=task, check_type="post_task", verdict="PASS", action=PASS)


def _check_requested(state: PhasesState, event: e.CheckRequested, at_us: int) -> None:
    state.wanted_checks.append(event.task)


TASK_FACTS: Facts = {
    e.TaskStarted: _task_started,
    e.TaskBlocked: _task_blocked,
    e.CriteriaReported: _criteria_reported,
    e.IterationFinished: _iteration_finished,
    e.TaskFailed: _task_failed,
    e.TaskRetried: _task_retried,
    e.TasksSkipped: _tasks_skipped,
    e.TaskCompleted: _task_completed,
    e.SupervisorChecked: _supervisor_checked,
    e.Intervened: _intervened,
    e.PlanChanged: _plan_changed,
    HumanJudged: _human_judged,
    e.AgentGaveUp: _agent_gave_up,
    e.CheckAbandoned: _check_abandoned,
    e.CheckRequested: _check_requested,
}
