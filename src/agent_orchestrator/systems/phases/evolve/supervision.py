"""Facts about the supervisor and the plan: what was found, how it was settled, what is to be done instead."""

from __future__ import annotations

from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.evolve.marks import drop_work, warn
from agent_orchestrator.systems.phases.evolve.review import check_globals
from agent_orchestrator.systems.phases.replanning import changed_plan
from agent_orchestrator.systems.phases.state import PhasesState, as_intervention
from agent_orchestrator.systems.phases.supervising import AUTO_FIX, RE_PLAN, REFUSE
from agent_orchestrator.systems.phases.works import CheckWork, ReviewWork, TaskWork, Verdict, Work


def _supervisor_checked(state: PhasesState, event: e.SupervisorChecked, at_us: int) -> None:
    supervisor = state.supervisor
    supervisor.checks_performed += 1
    supervisor.conflicts_detected += len(event.conflicts)
    supervisor.re_plans_triggered += event.action == RE_PLAN
    supervisor.last_check = stamp(at_us)
    work = state.works[event.step]
    work.verdict = Verdict(
        task=event.task,
        check_type=event.check_type,
        action=event.action,
        conflicts=event.conflicts,
        changes=event.changes,
        affected=event.affected,
        summary=event.summary,
    )
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


def _go_on(state: PhasesState, work: Work) -> None:
    """The check is settled: what was to follow it follows."""
    if isinstance(work, CheckWork):
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


def apply_changes(state: PhasesState, changes: tuple[e.PlanChange, ...]) -> None:
    """The plan is another one; what was removed is at work no longer."""
    state.plan = changed_plan(state.plan, changes)
    for change in changes:
        if change.action == "remove":
            drop_work(state, change.task)
            state.skipped.pop(change.task, None)


def _human_judged(state: PhasesState, event: e.HumanJudged, at_us: int) -> None:
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
    if isinstance(work, CheckWork):
        drop_work(state, event.step)
    elif isinstance(work, ReviewWork):
        check_globals(state, work)
    elif work.purpose == "post_task":
        work.verdict, work.due = _nothing_found(work.unit), "judge"
    else:
        work.due = "execute" if work.purpose == "pre_task" else "approve"


def _nothing_found(task: str) -> Verdict:
    return Verdict(task=task, check_type="post_task", action="pass", conflicts=(), changes=(), affected=(), summary="")


def _check_requested(state: PhasesState, event: e.CheckRequested, at_us: int) -> None:
    state.wanted_checks.append(event.task)


SUPERVISION_FACTS: Facts = {
    e.SupervisorChecked: _supervisor_checked,
    e.Intervened: _intervened,
    e.PlanChanged: _plan_changed,
    e.HumanJudged: _human_judged,
    e.AgentGaveUp: _agent_gave_up,
    e.CheckAbandoned: _check_abandoned,
    e.CheckRequested: _check_requested,
}
