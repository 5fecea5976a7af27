"""Facts about what units do: agents, waits, questions to people, saving, checking."""

from __future__ import annotations

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.events import BackoffEnded, HumanAsked, HumanJudged, MergeStarted
from agent_orchestrator.core.judging import Worth
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.systems.team import events as e
from agent_orchestrator.systems.team.effects import ask_human, check_requirement, merge_work, run_agent, save_work
from agent_orchestrator.systems.team.evolve.marks import begin, launch, rest, touch, touch_group, touch_plan
from agent_orchestrator.systems.team.roles import ROLE_OF, Purpose
from agent_orchestrator.systems.team.state import Blocker, Group, Stage, TeamState, TeamUnit, Turn


def _agent_started(state: TeamState, event: e.AgentStarted, at_us: int) -> None:
    unit = state.unit(event.step)
    if unit.turn is None or not event.again:
        unit.turn = _new_turn(state, unit, event.purpose, at_us)
        unit.session, unit.spent_us, unit.feedback = None, 0, ()
    launch(state, unit, run_agent(state, unit, unit.turn, event.effect), at_us)
    unit.agent_launch, unit.spawned_us = event.effect, at_us
    if event.purpose is Purpose.DEVELOP:
        state.developing[unit.unit] = None
    state.spawns += 1
    touch(state, state.team_file, at_us)


def _new_turn(state: TeamState, unit: TeamUnit, purpose: Purpose, at_us: int) -> Turn:
    number = state.next_number(unit, purpose)
    if isinstance(unit, Group):
        _count_turn(state, unit, purpose, at_us)
    elif purpose is Purpose.PLAN:
        state.plans += 1
    elif purpose is Purpose.FINAL:
        state.finals += 1
    else:
        unit.stage = Stage.CONFIRM
    told = state.unread.pop((unit.unit, ROLE_OF[purpose].value), [])
    for message in told:
        message["read"] = True
    names = tuple(message["id"] for message in told)
    return Turn(purpose=purpose, number=number, told=names, asked=len(state.requirements))


def _count_turn(state: TeamState, group: Group, purpose: Purpose, at_us: int) -> None:
    if purpose is Purpose.DEVELOP:
        group.developer += 1
        if group.stage is Stage.PENDING:
            group.stage, group.started_us = Stage.DEVELOP, at_us if group.started_us is None else group.started_us
            state.at_work[group.unit] = None
            state.ready.remove(group.unit)
            touch_plan(state, at_us)
    elif purpose is Purpose.QA:
        group.qa += 1
    else:
        group.tech_lead += 1
    touch_group(state, group, at_us)


def _agent_finished(state: TeamState, event: e.AgentFinished, at_us: int) -> None:
    unit = state.unit(event.step)
    rest(state, unit)
    unit.end_agent(event)
    touch(state, state.team_file, at_us)
    if isinstance(unit, Group):
        unit.updated_us = at_us
    if event.failure is None:
        if unit.turn is not None and unit.turn.purpose is Purpose.PLAN:
            for requirement in state.requirements[: unit.turn.asked]:
                requirement.planned = True
        unit.turn, unit.error = None, ""
        if not isinstance(unit, Group):
            unit.points.clear()
    else:
        unit.session = event.session  # The next attempt, too, goes on in it.


def _launch_interrupted(state: TeamState, event: e.LaunchInterrupted, at_us: int) -> None:
    rest(state, state.unit(event.step))


def _retry_scheduled(state: TeamState, event: e.RetryScheduled, at_us: int) -> None:
    unit = state.unit(event.step)
    unit.error = event.error
    if unit.turn is not None:
        unit.tell({"attempt": unit.turn.attempt, "error": event.error})
        unit.turn.attempt = event.attempt
    begin(state, unit, Wait(id=event.effect, unit=unit.unit, until_us=event.until_us, reason=event.error))


def _backoff_ended(state: TeamState, event: BackoffEnded, at_us: int) -> None:
    rest(state, state.unit(event.step))


def _limit_reached(state: TeamState, event: e.LimitReached, at_us: int) -> None:
    unit = state.unit(event.step)
    unit.asking, unit.question, unit.error = event.about, event.question, event.description
    if isinstance(unit, Group):
        state.developing.pop(unit.unit, None)
        state.queue.leave(state.spec.into, unit.unit)
        if event.about != "held":
            unit.blockers.append(Blocker(description=event.description))
        touch_group(state, unit, at_us)
    rest(state, unit)


def _human_asked(state: TeamState, event: HumanAsked, at_us: int) -> None:
    unit = state.unit(event.step)
    begin(state, unit, ask_human(state, unit, event.effect, event.question, event.after))
    if isinstance(unit, Group):
        touch_group(state, unit, at_us)


def _human_judged(state: TeamState, event: HumanJudged, at_us: int) -> None:
    unit = state.unit(event.step)
    unit.asking = unit.question = unit.error = ""
    if unit.turn is not None:
        unit.turn.attempt, unit.feedback = 1, ()
    if event.comments:
        unit.points["person"] = (event.comments,)
    if isinstance(unit, Group):
        unit.qa_failures = unit.review_failures = unit.blocks = unit.partials = 0
        unit.unsaved = unit.merges_failed = 0
        for blocker in unit.blockers:
            if not blocker.resolved:
                blocker.resolved, blocker.resolution = True, event.comments or "a person said to go on"
        if unit.stage is Stage.MERGE:
            state.queue.join(state.spec.into, unit.unit)
        touch_group(state, unit, at_us)
    elif event.about == "clarification":
        unit.points.pop("person", None)
        said = event.comments or ("go on by your own judgement" if event.approved else "no answer; decide yourself")
        state.clarifications.append(("; ".join(state.questions), said))
    else:
        state.sent_back = 0
    rest(state, unit)


def _saving_started(state: TeamState, event: e.SavingStarted, at_us: int) -> None:
    group = state.groups[event.step]
    begin(state, group, save_work(state, group, event.effect, at_us))


def _merge_started(state: TeamState, event: MergeStarted, at_us: int) -> None:
    group = state.groups[event.step]
    launch(state, group, merge_work(state, group, event.effect, at_us), at_us)
    touch_group(state, group, at_us)


def _check_started(state: TeamState, event: e.CheckStarted, at_us: int) -> None:
    launch(state, state.pm, check_requirement(state, event.effect, event.requirement), at_us)


def _check_finished(state: TeamState, event: e.CheckFinished, at_us: int) -> None:
    state.pm.end_check(event, state.requirements[event.requirement].check or "")
    rest(state, state.pm)
    if event.judged is not Worth.STOPPED:
        state.pm.count_rerun(again=event.judged is Worth.AGAIN)


WORK_FACTS: Facts = {
    e.AgentStarted: _agent_started,
    e.AgentFinished: _agent_finished,
    e.LaunchInterrupted: _launch_interrupted,
    e.RetryScheduled: _retry_scheduled,
    BackoffEnded: _backoff_ended,
    e.LimitReached: _limit_reached,
    HumanAsked: _human_asked,
    HumanJudged: _human_judged,
    e.SavingStarted: _saving_started,
    MergeStarted: _merge_started,
    e.CheckStarted: _check_started,
    e.CheckFinished: _check_finished,
}
