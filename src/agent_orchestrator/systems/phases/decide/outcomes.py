"""Decides what follows the end of an agent: its report is read strictly."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.events import QuestionsRaised
from agent_orchestrator.core.failure import Failure, FailureKind, invalid_report
from agent_orchestrator.core.forms import read_fields
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.core.judging import After, judge_agent, judge_session, retry_us, session_after
from agent_orchestrator.core.launch_events import agent_fields
from agent_orchestrator.core.report import Learning, Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.phases.decide.settlements import list_interventions, settle_finding
from agent_orchestrator.systems.phases.events import (
    AgentFinished,
    AgentGaveUp,
    BackoffStarted,
    CriteriaReported,
    FindingsListed,
    LaunchInterrupted,
    LearningsRecorded,
    PhasesEvent,
    SupervisorChecked,
    TaskFailed,
)
from agent_orchestrator.systems.phases.reports import Criteria, Questions, Scanned
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.supervision import PASS, REFUSE, read_verdict
from agent_orchestrator.systems.phases.works import PhasesWork, TaskWork, task_of

LEARNING_TYPES = ("pattern", "antipattern", "insight")
QUESTIONS_MAX = 50
FINDINGS_MAX = 100
CHECKS = ("pre_task", "post_task", "on_demand")


def settle_agent(state: PhasesState, outcome: AgentEnded, now_us: int) -> list[PhasesEvent]:
    """Settle the end of an agent: what it said, what it learned, what follows."""
    work = state.works[unit_of(outcome.effect)]
    report = outcome.report or Report(status="")
    failure = judge_session(outcome.failure, state.doing.of(work.unit))
    if failure is not None and failure.kind is FailureKind.REPORTED and work.purpose == "execute":
        failure = None  # An iteration that says it failed is an iteration like any other.
    follows = _read(state, work, report) if failure is None else []
    if isinstance(follows, str):
        failure, follows = invalid_report(follows), []
    learned, dropped = _learnings(report)
    usage = outcome.usage
    finished = AgentFinished(
        step=work.unit,
        purpose=work.purpose,
        summary=clip(report.summary),
        metered=usage is not None and usage.cost_usd is not None,
        cost_usd=usage.cost_usd if usage is not None else None,
        session=session_after(outcome, failure),
        tail=outcome.tail if failure is not None else "",
        **agent_fields(outcome, failure, *dropped),
    )
    events: list[PhasesEvent] = [finished]
    if learned:
        events.append(LearningsRecorded(task=task_of(work), iteration=work.iteration, learnings=learned))
    return [*events, *(_failed(state, work, failure, now_us) if failure is not None else follows)]


def _failed(state: PhasesState, work: PhasesWork, failure: Failure, now_us: int) -> list[PhasesEvent]:
    after = judge_agent(failure, work.attempt, state.spec.max_attempts)
    if after is After.GOES_ON:
        return [LaunchInterrupted(step=work.unit, why=failure.message)]
    if after is After.RETRY:
        effect = state.name_effect(work.unit, work.iteration, work.attempt, "wait")
        until_us = retry_us(work.attempt, effect, now_us, failure)
        return [BackoffStarted(effect=effect, step=work.unit, until_us=until_us, reason=failure.message)]
    if isinstance(work, TaskWork) and work.purpose == "execute":
        return [TaskFailed(task=work.task, why=failure.message)]
    return [AgentGaveUp(step=work.unit, why=failure.message)]


def _read(state: PhasesState, work: PhasesWork, report: Report) -> list[PhasesEvent] | str:
    """Give the events that a report leads to, or what is wrong with it."""
    try:
        if work.purpose in CHECKS:
            return _checked(state, work, report)
        if work.purpose == "execute":
            said = read_fields(report, Criteria)
            return [CriteriaReported(task=task_of(work), status=report.status, criteria=said.criteria)]
        if work.purpose == "plan":
            return _planned(report)
        return _reviewed(state, work, report)
    except msgspec.ValidationError as error:
        return f"the report has a wrong field: {error}"


def _checked(state: PhasesState, work: PhasesWork, report: Report) -> list[PhasesEvent] | str:
    verdict: SupervisorChecked | str = read_verdict(state, report, work.unit, task_of(work), work.purpose)
    if isinstance(verdict, str):
        return verdict
    settled = list_interventions(verdict, "noted") if verdict.action in (PASS, REFUSE) else []
    return [verdict, *settled]


def _planned(report: Report) -> list[PhasesEvent] | str:
    asked = [text.strip() for text in read_fields(report, Questions).questions if text.strip()]
    if report.status == "QUESTIONS" and not asked:
        return "the planner's report says QUESTIONS and asks none"
    return [QuestionsRaised(questions=tuple(asked[:QUESTIONS_MAX]) if report.status == "QUESTIONS" else ())]


def _reviewed(state: PhasesState, work: PhasesWork, report: Report) -> list[PhasesEvent] | str:
    found = read_fields(report, Scanned).findings
    if work.purpose == "repair":
        if report.status == "FIXED":
            return []
        left = (report.summary or "it could not be mended") if report.status == "FOUND" else ""
        return [settle_finding(state, work, left)]
    if report.status == "FOUND" and not found:
        return "the scanner's report says FOUND and names no finding"
    wanted = sorted(found, key=lambda one: _urgency(one.priority)) if report.status == "FOUND" else []
    return [FindingsListed(findings=tuple(wanted[:FINDINGS_MAX]), fixed=report.status == "FIXED")]


def _urgency(priority: str) -> int:
    words = {"critical": 0, "high": 1, "medium": 2, "low": 3}
    word = priority.strip().lower()
    return int(word[1:]) if word[:1] == "p" and word[1:].isdecimal() and len(word) < 4 else words.get(word, 9)


def _learnings(report: Report) -> tuple[tuple[Learning, ...], tuple[str, ...]]:
    kept = tuple(one for one in report.learnings if one.type in LEARNING_TYPES)
    dropped = [one.type for one in report.learnings if one.type not in LEARNING_TYPES]
    said = f"must be one of {', '.join(LEARNING_TYPES)}"
    return kept, tuple(f"a learning was dropped: its type is {word!r}, which {said}" for word in dropped)
