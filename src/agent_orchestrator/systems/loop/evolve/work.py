"""Facts about what a loop does: saved, worked, checked, confirmed, waited."""

from __future__ import annotations

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.judging import Worth
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.limits import TAIL_CHARS
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.loop import events as e
from agent_orchestrator.systems.loop.effects import ask_human, confirm, run_agent, run_check, save_tree
from agent_orchestrator.systems.loop.evolve import old_rules
from agent_orchestrator.systems.loop.evolve.marks import begin, begin_program, most, stop_pausing
from agent_orchestrator.systems.loop.state import (
    CHECKS_KEPT,
    LEARNINGS_KEPT,
    UNIT,
    Check,
    Iteration,
    LoopState,
    Saved,
)


def _saving_started(state: LoopState, event: e.SavingStarted, at_us: int) -> None:
    begin(state)
    state.doing.put(save_tree(state, event.effect, event.iteration, at_us))


def _tree_saved(state: LoopState, event: e.TreeSaved, at_us: int) -> None:
    state.doing.drop(UNIT)
    if event.unavailable:
        state.untracked = event.unavailable
        state.record.warn(event.unavailable)
    if event.commit is not None and event.tree is not None:
        state.last = Saved(
            commit=event.commit,
            tree=event.tree,
            files_changed=event.files_changed,
            lines_added=event.lines_added,
            lines_removed=event.lines_removed,
        )
        state.untracked = ""
        if event.iteration == 0:
            state.start = state.last
        else:
            state.changed, state.diff = event.changed, event.diff
    state.due = event.then or old_rules.then_after_saving(state)
    if state.current is not None:
        state.current.saved = state.last if event.commit is not None else None
        if state.spec.command is None:
            state.verdict = None


def _iteration_started(state: LoopState, event: e.IterationStarted, at_us: int) -> None:
    if state.current is None:
        told = tuple(state.steering)
        state.steering.clear()
        state.current = Iteration(number=event.iteration, started_us=at_us, told=told)
        state.record.spent_us = 0
        if not state.spec.continue_session:
            state.record.session = None
        state.verdict = state.accepted = None
    begin_program(state, event.effect, at_us)
    state.doing.put(run_agent(state, event.effect, at_us))
    state.record.agent_launch = event.effect


def _agent_finished(state: LoopState, event: e.AgentFinished, at_us: int) -> None:
    state.doing.drop(UNIT)
    stop_pausing(state, at_us)
    record, current = state.record, state.current
    record.close_launch(event)
    record.warn(*event.warnings)
    assert current is not None, "an agent worked in an iteration"
    if event.tokens is not None:
        state.tokens = (state.tokens or 0) + event.tokens
        current.tokens = (current.tokens or 0) + event.tokens
    if event.cost_usd is not None:
        state.cost_usd = (state.cost_usd or 0.0) + event.cost_usd
        current.cost_usd = (current.cost_usd or 0.0) + event.cost_usd
    if state.confirming:
        state.confirming = False
        return
    record.spent_us += event.ended_us - event.started_us
    record.session = event.session  # Kept when the iteration is over, too: the next one may go on with it.
    if event.went_on:
        return
    current.summary, current.done = event.summary, event.done
    current.reported_score = event.quality_score
    current.agent_error = event.failure.message if event.failure is not None else ""
    state.learnings = list(dict.fromkeys([*state.learnings, *event.learnings]))[-LEARNINGS_KEPT:]
    state.notices = ()
    state.due = "save"


def _launch_interrupted(state: LoopState, event: e.LaunchInterrupted, at_us: int) -> None:
    state.doing.drop(UNIT)
    state.due = event.what


def _check_started(state: LoopState, event: e.CheckStarted, at_us: int) -> None:
    begin_program(state, event.effect, at_us)
    state.purpose = event.purpose
    state.doing.put(run_check(state, event.effect, event.purpose, at_us))


def _check_finished(state: LoopState, event: e.CheckFinished, at_us: int) -> None:
    state.doing.drop(UNIT)
    state.record.end_check(event, event.command)
    worth = event.judged
    if worth is Worth.STOPPED:
        return
    state.record.count_rerun(again=worth is Worth.AGAIN)
    output = (event.failure.message if event.failure is not None and not event.tail else event.tail)[-TAIL_CHARS:]
    check = Check(iteration=state.number, timestamp=stamp(event.ended_us), passed=event.passed, output=output)
    state.checks.append(check)
    del state.checks[:-CHECKS_KEPT]
    state.check_output, state.check_exit = output, event.exit_code
    if state.current is not None:
        state.current.tests, state.current.tests_passed = event.tests, event.tests_passed
    state.due = event.then or old_rules.then_after_check(state, event)
    if worth is Worth.AGAIN:
        return
    if event.purpose == "before":
        state.early = event.passed
        state.tests_most = most(state.tests_most, event.tests)
    elif event.purpose == "check":
        state.verdict = event.passed


def _confirmation_started(state: LoopState, event: e.ConfirmationStarted, at_us: int) -> None:
    begin_program(state, event.effect, at_us)
    state.confirming = True
    state.doing.put(confirm(state, event.effect, at_us))


def _human_asked(state: LoopState, event: e.HumanAsked, at_us: int) -> None:
    begin(state)
    state.asking = event.about
    state.doing.put(ask_human(state, event.effect, event.question, event.after))


def _human_judged(state: LoopState, event: e.HumanJudged, at_us: int) -> None:
    state.doing.drop(UNIT)
    if event.about == "criterion":
        state.verdict = event.approved
        if not event.approved:
            state.check_output, state.check_exit = event.comments, None
            said = f"the criterion was not confirmed: {event.comments or 'no reason was given'}"
            state.notices = (*state.notices, said)
        state.due = "judge"
    elif event.about == "weakened":
        state.accepted = event.approved
        if event.comments and not event.approved:
            state.steering.append(event.comments)
        state.due = "judge"
    else:
        state.due = "next"
        state.accepted = event.approved
        if event.approved:
            state.strikes, state.accepted = 0, None
        if event.comments:
            state.steering.append(event.comments)  # A loop that was given up leaves it to its successor.


def _backoff_started(state: LoopState, event: e.BackoffStarted, at_us: int) -> None:
    begin(state)
    state.cooling, state.then = False, event.then
    state.doing.put(Wait(id=event.effect, unit=UNIT, until_us=event.until_us, reason=event.reason))


def _backoff_ended(state: LoopState, event: e.BackoffEnded, at_us: int) -> None:
    state.doing.drop(UNIT)
    state.due = state.then


WORK_FACTS: Facts = {
    e.SavingStarted: _saving_started,
    e.TreeSaved: _tree_saved,
    e.IterationStarted: _iteration_started,
    e.AgentFinished: _agent_finished,
    e.LaunchInterrupted: _launch_interrupted,
    e.CheckStarted: _check_started,
    e.CheckFinished: _check_finished,
    e.ConfirmationStarted: _confirmation_started,
    e.HumanAsked: _human_asked,
    e.HumanJudged: _human_judged,
    e.BackoffStarted: _backoff_started,
    e.BackoffEnded: _backoff_ended,
}
