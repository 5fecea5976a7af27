"""Facts about programs, commits, waits and questions of any unit."""

from __future__ import annotations

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.events import BackoffEnded, HumanAsked, MergeStarted
from agent_orchestrator.core.judging import Worth
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.effects import ask_human, merge, run_agent, run_check, save_tree
from agent_orchestrator.systems.phases.evolve.marks import go_on_reviewing, next_command, warn
from agent_orchestrator.systems.phases.spec import Lesson, ReviewFinding
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import CHECK, MilestoneWork, OnDemandWork, PhasesWork, ReviewWork, TaskWork

AFTER_SAVING = {"work": "post", "kept": "fix"}
TOOLS = {"push": "look", "look": "create", "create": "look"}
"""The step after a tool that found or made nothing; one that was lost is looked for again."""


def _agent_started(state: PhasesState, event: e.AgentStarted, at_us: int) -> None:
    if event.step == CHECK and CHECK not in state.works:
        state.open_work(OnDemandWork(unit=CHECK, task=state.wanted_checks.pop(0)))
    work = state.works[event.step]
    fresh = (event.purpose, event.iteration) != (work.purpose, work.iteration) or work.agent_since_us is None
    work.purpose, work.due = event.purpose, None
    if fresh:
        work.agent_since_us, work.session, work.spent_us = at_us, None, 0
        if isinstance(work, TaskWork) and event.purpose == "execute":
            work.met, work.said, work.errors, work.checks, work.status = {}, {}, [], {}, ""
            work.fixed, work.verdict, work.at = False, None, 0
    work.iteration, work.attempt, work.trouble = event.iteration, event.attempt, ""
    work.agent_launch = event.effect
    work.open_launch(event.effect, at_us)
    state.doing.put(run_agent(state, work, event.effect))


def _agent_finished(state: PhasesState, event: e.AgentFinished, at_us: int) -> None:
    state.doing.drop(event.step)
    work = state.works[event.step]
    work.end_agent(event)
    warn(state, *event.warnings)
    state.unmetered |= not event.metered
    if event.cost_usd is not None:
        state.cost_usd = (state.cost_usd or 0.0) + event.cost_usd
    if isinstance(work, TaskWork):
        work.worked_us += event.ended_us - event.started_us
        work.unmetered |= not event.metered
        if event.cost_usd is not None:
            work.cost_usd = (work.cost_usd or 0.0) + event.cost_usd
    if event.failure is not None:
        work.session = event.session  # The next attempt, too, goes on in it.
        return
    work.agent_since_us = None
    if event.purpose == "repair":
        work.due = "mend"


def _learnings_recorded(state: PhasesState, event: e.LearningsRecorded, at_us: int) -> None:
    state.learnings += [
        Lesson(
            timestamp=stamp(at_us),
            task=event.task,
            iteration=event.iteration,
            type=one.type,
            lesson=one.lesson,
            pattern=one.pattern,
            context=one.context,
        )
        for one in event.learnings
    ]


def _launch_interrupted(state: PhasesState, event: e.LaunchInterrupted, at_us: int) -> None:
    work = state.works[event.step]
    state.doing.drop(event.step)
    work.due = {"criterion": "criteria", "global": "criteria"}.get(work.purpose, "again")
    if isinstance(work, MilestoneWork):
        work.due = "push" if work.purpose == "push" else "look"


def _backoff_started(state: PhasesState, event: e.BackoffStarted, at_us: int) -> None:
    work = state.works[event.step]
    work.begin()
    work.trouble = event.reason
    work.tell({"iteration": work.iteration, "attempt": work.attempt, "error": event.reason})
    work.attempt += 1
    state.doing.put(Wait(id=event.effect, unit=event.step, until_us=event.until_us, reason=event.reason))


def _backoff_ended(state: PhasesState, event: BackoffEnded, at_us: int) -> None:
    state.doing.drop(event.step)
    state.works[event.step].due = "again"


def _human_asked(state: PhasesState, event: HumanAsked, at_us: int) -> None:
    work = state.works[event.step]
    work.begin()
    work.asking = event.about
    state.doing.put(ask_human(state, work, event.effect, event.question))


def _saving_started(state: PhasesState, event: e.SavingStarted, at_us: int) -> None:
    work = state.works[event.step]
    work.begin(event.purpose)
    state.doing.put(save_tree(state, work, event.effect, at_us))


def _tree_saved(state: PhasesState, event: e.TreeSaved, at_us: int) -> None:
    state.doing.drop(event.step)
    work = state.works[event.step]
    if event.unavailable:
        state.trouble, work.due = event.unavailable, event.purpose
        return
    if event.purpose == "base":
        state.start = event.branch_commit or event.head or event.commit
        work.due = "plan" if state.spec.plan_with else "approve"
        return
    if event.purpose == "work" and isinstance(work, TaskWork):
        work.snapshot, work.diff = event.commit, event.diff
    if event.purpose == "fix":
        _settle_fix(state, work)
    elif event.purpose == "checkpoint" and isinstance(work, TaskWork) and work.branch:
        work.files, work.due = event.files, "merge"
    elif event.purpose == "left":
        state.start = event.branch_commit or state.start
        state.works.pop(event.step)
    elif event.purpose == "mend" and isinstance(work, ReviewWork) and not work.findings:
        go_on_reviewing(state, work, event.then)
    else:
        work.due = AFTER_SAVING.get(event.purpose)


def _settle_fix(state: PhasesState, work: PhasesWork) -> None:
    """Go on after a committed fix of the supervisor: look at the criteria once more, or start the task."""
    if isinstance(work, OnDemandWork):
        state.works.pop(work.unit)
    elif isinstance(work, TaskWork) and work.verdict is not None and work.verdict.check_type == "post_task":
        work.fixed, work.errors, work.checks = True, [], {}
        at = next_command(state.plan[work.task].criteria, 0)
        work.at, work.due = at or 0, "criteria" if at is not None else "judge"
    else:
        work.verdict, work.due = None, "execute"


def _merge_started(state: PhasesState, event: MergeStarted, at_us: int) -> None:
    work = state.works[event.step]
    work.begin("merge")
    assert isinstance(work, TaskWork), "a task is merged"
    state.doing.put(merge(state, work, event.effect, at_us))


def _merge_finished(state: PhasesState, event: e.MergeFinished, at_us: int) -> None:
    state.doing.drop(event.step)
    work = state.works[event.step]
    if event.again:
        work.due = "merge"
    elif event.held:
        state.trouble, work.due = event.detail, "merge"


def _check_started(state: PhasesState, event: e.CheckStarted, at_us: int) -> None:
    work = state.works[event.step]
    work.purpose, work.due = event.purpose, None
    work.open_launch(event.effect, at_us)
    effect = run_check(state, work, event.effect, event.criterion)
    work.criterion, work.command = event.criterion, effect.command
    state.doing.put(effect)


def _check_finished(state: PhasesState, event: e.CheckFinished, at_us: int) -> None:
    state.doing.drop(event.step)
    work = state.works[event.step]
    work.end_check(event, event.command)
    worth = event.judged
    if worth is Worth.STOPPED:
        return
    work.count_rerun(again=worth is Worth.AGAIN)
    if isinstance(work, MilestoneWork):
        work.due = TOOLS[event.purpose]
        return
    if worth is Worth.AGAIN:
        work.due = "criteria"
        return
    if isinstance(work, TaskWork):
        work.worked_us += event.ended_us - event.started_us
        work.met[event.criterion] = event.passed
        if not event.passed:
            work.errors.append(_unmet(event))
            work.checks[event.criterion] = {"command": event.command, "exit_code": event.exit_code, "tail": event.tail}
        at = next_command(state.plan[work.task].criteria, work.at + 1)
        work.at, work.due = at or 0, "criteria" if at is not None else "judge"
    elif isinstance(work, ReviewWork):
        if not event.passed:
            work.failing.append(ReviewFinding(priority="P0", issue=_unmet(event)))
        at = next_command(state.spec.plan.criteria, work.at + 1)
        work.at, work.due = at or 0, "criteria" if at is not None else event.then or _then_in_0_1_0(state, work)
        if work.due == "repair":
            work.findings, work.looping = list(work.failing), True


def _then_in_0_1_0(state: PhasesState, work: ReviewWork) -> str:
    """Say what followed the criteria of the whole, for journals that do not say it: never changed."""
    if not work.failing:
        return "reviewed"
    return "repair" if state.spec.plan.outer_ralph and work.iteration < state.spec.plan.outer_max else "unmet"


def _unmet(event: e.CheckFinished) -> str:
    lines = [line.strip() for line in event.tail.splitlines() if line.strip()]
    if event.failure is not None:
        said = event.failure.message
    elif event.moved:
        said = "the working tree changed while it ran"
    else:
        said = f"exit code {event.exit_code}" + (f", {lines[-1][:300]}" if lines else "")
    return f"`{event.command}` failed ({said})"


LAUNCH_FACTS: Facts = {
    e.AgentStarted: _agent_started,
    e.AgentFinished: _agent_finished,
    e.LearningsRecorded: _learnings_recorded,
    e.LaunchInterrupted: _launch_interrupted,
    e.BackoffStarted: _backoff_started,
    BackoffEnded: _backoff_ended,
    HumanAsked: _human_asked,
    e.SavingStarted: _saving_started,
    e.TreeSaved: _tree_saved,
    MergeStarted: _merge_started,
    e.MergeFinished: _merge_finished,
    e.CheckStarted: _check_started,
    e.CheckFinished: _check_finished,
}
