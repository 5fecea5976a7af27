"""Decides what follows the end of an agent: the routing table of the roles, row by row."""

from __future__ import annotations

from collections.abc import Callable

from agent_orchestrator.core.failure import Failure, invalid_report
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.core.judging import After, judge_agent, judge_session, retry_us, session_after
from agent_orchestrator.core.launch_events import agent_fields
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.team.decide.plans import route_confirmation, route_final, route_plan
from agent_orchestrator.systems.team.events import (
    AgentFinished,
    Decided,
    LaunchInterrupted,
    LimitReached,
    MessageSent,
    QaReported,
    RetryScheduled,
    Reviewed,
    TeamEvent,
    WorkReported,
)
from agent_orchestrator.systems.team.messages import QA_TO_TECHLEAD, TECHLEAD_TO_DEV, qa_results, review_decision
from agent_orchestrator.systems.team.roles import ROLE_OF, DeveloperReport, Purpose, ReviewReport, check_counts, read, read_tests
from agent_orchestrator.systems.team.spec import QaMode
from agent_orchestrator.systems.team.state import Group, TeamState, TeamUnit

PARTIALS_MAX = 10
"""The number of times in a row that a developer may be not done before a person is asked."""

Route = Callable[[TeamState, TeamUnit, Report, AgentEnded, int], "list[TeamEvent] | Failure"]


def settle_agent(state: TeamState, outcome: AgentEnded, now_us: int) -> list[TeamEvent]:
    """Settle the end of an agent: what it said is routed, or its turn is tried again."""
    unit = state.unit(unit_of(outcome.effect))
    assert unit.turn is not None, "an agent works in a turn"
    failed, report = judge_session(outcome.failure, state.doing.of(unit.unit)), outcome.report
    routed: list[TeamEvent] | Failure = failed or invalid_report("there is no report")
    if failed is None and report is not None:
        routed = _ROUTES[unit.turn.purpose](state, unit, report, outcome, now_us)
    failure = routed if isinstance(routed, Failure) else None
    finished = AgentFinished(
        step=unit.unit,
        summary=clip(report.summary) if report is not None else "",
        session=session_after(outcome, failure),
        tail=outcome.tail if failure is not None else "",
        **agent_fields(outcome, failure),
    )
    follows = _failed(state, unit, routed, now_us) if isinstance(routed, Failure) else routed
    return [finished, *follows]


def _failed(state: TeamState, unit: TeamUnit, failure: Failure, now_us: int) -> list[TeamEvent]:
    turn = unit.turn
    assert turn is not None
    role = ROLE_OF[turn.purpose].value
    after = judge_agent(failure, turn.attempt, state.spec.max_attempts)
    if after is After.GOES_ON:
        return [LaunchInterrupted(step=unit.unit)]
    if after is After.RETRY:
        effect = state.name_effect(unit, "wait")
        until_us = retry_us(turn.attempt, effect, now_us, failure)
        where = f"_group_{unit.unit}" if isinstance(unit, Group) else ""
        why = f"Attempt {turn.attempt} of {state.spec.max_attempts} failed: {failure.message}"
        decided = Decided(decision=f"retry_{role}{where}", reasoning=why[:300])
        again = RetryScheduled(effect=effect, step=unit.unit, until_us=until_us, attempt=turn.attempt + 1, error=failure.message)
        return [decided, again]
    where = f" of group {unit.unit}" if isinstance(unit, Group) else ""
    tried = f" after {say_count(turn.attempt, 'attempt')}" if failure.retryable else ""
    what = f"the {role}{where} failed{tried}: {failure.message}"
    question = f"The run cannot continue: {what.rstrip('.')}. Approve to try again, reject to give up."
    return [LimitReached(step=unit.unit, about="agent", description=what, question=question)]


def _developed(state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int) -> list[TeamEvent] | Failure:
    """Route READY_FOR_QA → QA; READY_FOR_REVIEW → tech lead; BLOCKED → tech lead; PARTIAL → the same developer again."""
    assert isinstance(unit, Group)
    found = read(report, DeveloperReport)
    if isinstance(found, Failure):
        return found
    if (wrong := check_counts({"unit_tests": found.unit_tests})) is not None:
        return wrong
    status = report.status
    then = {"READY_FOR_QA": "qa", "READY_FOR_REVIEW": "review", "BLOCKED": "consult", "PARTIAL": "develop"}[status]
    if then == "qa" and state.spec.testing is not QaMode.FULL:
        then = "review"
    blocker = found.blocker or found.notes or report.summary
    if status == "BLOCKED" and not blocker.strip():
        return invalid_report("the report's status is BLOCKED and does not say by what: `blocker` is missing")
    reported = WorkReported(
        group=unit.unit,
        status=status,
        summary=clip(report.summary),
        notes=clip(found.notes),
        unit_tests=found.unit_tests.plain() if found.unit_tests is not None else None,
        blocker=clip(blocker) if status == "BLOCKED" else "",
        then=then,
    )
    return [reported, *_worn_out(state, unit, status)]


def _worn_out(state: TeamState, group: Group, status: str) -> list[TeamEvent]:
    """Ask a person about a developer who is blocked or not done again and again."""
    most = state.spec.max_review_rounds
    if status == "BLOCKED" and group.blocks + 1 >= most:
        return [reach_limit(group, "blocked", f"developer {group.unit} was blocked {say_count(group.blocks + 1, 'time')}")]
    if status == "PARTIAL" and group.partials + 1 >= PARTIALS_MAX:
        return [
            reach_limit(group, "partial", f"developer {group.unit} was not done {say_count(group.partials + 1, 'time')} in a row")
        ]
    return []


def reach_limit(group: Group, about: str, what: str) -> LimitReached:
    """Say that the group cannot go on by itself."""
    way = "Approve, with comments for the developer, to go on; reject to give up."
    question = f"Group {group.unit} ({group.name}): {what.rstrip('.')}. {way}"
    return LimitReached(step=group.unit, about=about, description=what, question=question)


def _tested(state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int) -> list[TeamEvent] | Failure:
    """Route PASS → tech lead; FAIL → developer with the failures; both are told to the tech lead."""
    assert isinstance(unit, Group)
    assert unit.turn is not None
    found = read_tests(report)
    if isinstance(found, Failure):
        return found
    passed = report.status == "PASS"
    took_us = unit.spent_us + outcome.ended_us - outcome.started_us
    results = found.test_results
    if (
        wrong := check_counts({f"test_results.{name}": getattr(results, name) for name in results.__struct_fields__})
    ) is not None:
        return wrong
    kinds = [name for name in results.__struct_fields__ if getattr(results, name) is not None]
    failures = tuple(clip(one) for one in found.failures)
    reported = QaReported(
        group=unit.unit,
        passed=passed,
        test_results={name: getattr(results, name).plain() for name in kinds},
        failures=() if passed else failures or (clip(report.summary) or "QA failed without saying why",),
        summary=clip(report.summary),
    )
    message = qa_results(state, unit, results, passed=passed, took_us=took_us, now_us=now_us)
    events: list[TeamEvent] = [reported, MessageSent(box=QA_TO_TECHLEAD, group=unit.unit, message=message)]
    rounds = unit.qa_failures + 1
    if not passed and rounds >= state.spec.max_qa_rounds:
        failed = f"QA failed {say_count(rounds, 'time')}, the limit is {state.spec.max_qa_rounds}"
        why = f"{failed}; the last time: {reported.failures[0]}"
        events.append(reach_limit(unit, "qa_rounds", why))
    return events


def _reviewed(state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int) -> list[TeamEvent] | Failure:
    """Route APPROVED → merge; CHANGES_REQUESTED → developer, then QA again; UNBLOCKED → developer with the guidance."""
    assert isinstance(unit, Group)
    found = read(report, ReviewReport)
    if isinstance(found, Failure):
        return found
    decision = report.status.lower()
    message = review_decision(state, unit, decision, found, report.summary, now_us)
    feedback = clip(found.feedback or report.summary)
    points = [clip(one) for one in (*(issue.line() for issue in found.issues), *found.actionable_items) if one.strip()]
    quality = {name: getattr(found.quality, name) for name in found.quality.__struct_fields__}
    reviewed = Reviewed(
        group=unit.unit,
        decision=decision,
        feedback=feedback,
        points=tuple(dict.fromkeys(one for one in (feedback, *points) if one)),
        quality={name: value for name, value in quality.items() if value is not None},
    )
    events: list[TeamEvent] = [reviewed, MessageSent(box=TECHLEAD_TO_DEV, group=unit.unit, message=message)]
    rounds = unit.review_failures + 1
    if decision == "changes_requested" and rounds >= state.spec.max_review_rounds:
        requested = f"changes were requested {say_count(rounds, 'time')}, the limit is {state.spec.max_review_rounds}"
        why = f"{requested}; the last time: {feedback}"
        events.append(reach_limit(unit, "review_rounds", why))
    return events


_ROUTES: dict[Purpose, Route] = {
    Purpose.PLAN: route_plan,
    Purpose.FINAL: route_final,
    Purpose.CONFIRM: route_confirmation,
    Purpose.DEVELOP: _developed,
    Purpose.QA: _tested,
    Purpose.REVIEW: _reviewed,
    Purpose.CONSULT: _reviewed,
}
