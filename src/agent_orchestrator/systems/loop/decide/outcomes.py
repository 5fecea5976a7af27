"""Says what the outcome of a loop's effect means: go on, once more, or the end."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.evidence import count_tests
from agent_orchestrator.core.failure import Failure, FailureKind, invalid_report
from agent_orchestrator.core.forms import read_fields
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, CheckpointEnded
from agent_orchestrator.core.judging import After, Worth, judge_agent, judge_check, judge_session, session_after
from agent_orchestrator.core.launch_events import agent_fields, check_fields
from agent_orchestrator.core.limits import CHECK_RERUNS_MAX
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip, last_line
from agent_orchestrator.systems.loop.effects import IterationReport
from agent_orchestrator.systems.loop.events import (
    AgentFinished,
    CheckFinished,
    Concluded,
    HumanJudged,
    LaunchInterrupted,
    LoopEvent,
    TreeSaved,
)
from agent_orchestrator.systems.loop.state import UNIT, LoopState
from agent_orchestrator.systems.loop.steps import after_check, after_saving

LOST = "the process that drove the loop is gone, and what it ran is gone with it"


def agent_ended(state: LoopState, outcome: AgentEnded) -> list[LoopEvent]:
    """The iteration's agent is over, or the one that confirms."""
    report = outcome.report or Report(status="")
    said = _read(report)
    failure = judge_session(outcome.failure, state.doing.of(UNIT)) or (said if isinstance(said, Failure) else None)
    added = said if isinstance(said, IterationReport) else IterationReport()
    finished = AgentFinished(
        summary=clip(report.summary),
        done=added.done,
        quality_score=added.quality_score,
        learnings=tuple(clip(one.lesson)[:300] for one in report.learnings),
        tokens=outcome.usage.tokens if outcome.usage is not None else None,
        cost_usd=outcome.usage.cost_usd if outcome.usage is not None else None,
        session=session_after(outcome, failure),
        tail=outcome.tail if failure is not None else "",
        **agent_fields(outcome, failure),
    )
    return [finished, *_follow_agent(state, finished, report)]


def _follow_agent(state: LoopState, finished: AgentFinished, report: Report) -> list[LoopEvent]:
    """Say what follows the end of an agent."""
    failure = finished.failure
    after = judge_agent(failure, state.failing + 1, None)  # The next iteration is the next attempt.
    what = "confirm" if state.confirming else "agent"
    if after is After.GOES_ON:
        return [LaunchInterrupted(what=what)]
    if failure is not None and failure.kind is FailureKind.LOST and state.orphaned:
        return [_conclude_crash(failure)]
    if state.confirming:
        return [_confirm(report, failure)]
    if failure is not None and after is After.FAILURE:
        return [Concluded(stop=StopReason.FAILED, detail=failure.message)]
    return []


def check_ended(state: LoopState, outcome: CheckEnded) -> list[LoopEvent]:
    """A command is over: the evidence, and whether it is run once more."""
    failure, purpose = outcome.failure, state.purpose
    worth = judge_check(outcome, state.record.reruns)
    orphan = failure is not None and failure.kind is FailureKind.LOST and state.orphaned
    if worth is Worth.FAILED and state.completing and state.record.reruns < CHECK_RERUNS_MAX:
        worth = Worth.AGAIN  # It passed a moment ago: one red verification does not end a loop.
    if worth is Worth.AGAIN and orphan:
        worth = Worth.FAILED  # The loop has crashed: nothing is run again.
    counted = outcome.counted or count_tests(outcome.tail)
    spec = state.spec
    finished = CheckFinished(
        purpose=purpose,
        command=(spec.test_command if purpose == "tests" else spec.command) or "",
        tests=counted[0] if counted is not None else None,
        tests_passed=counted[1] if counted is not None else None,
        tree=outcome.tree_after,
        again=worth is Worth.AGAIN,
        worth=worth,
        then=after_check(state, purpose, worth),
        **check_fields(outcome),
    )
    if worth is Worth.STOPPED:
        return [finished, LaunchInterrupted(what=purpose)]
    if failure is not None and orphan:
        return [finished, _conclude_crash(failure)]
    if state.completing and worth is Worth.FAILED:
        return [finished, Concluded(stop=StopReason.FAILED, detail=_say_unverified(finished))]
    return [finished]


def tree_saved(state: LoopState, outcome: CheckpointEnded) -> list[LoopEvent]:
    """The tree is kept, or cannot be."""
    return [
        TreeSaved(
            iteration=state.current.number if state.current is not None else 0,
            unavailable=outcome.unavailable,
            commit=outcome.commit,
            tree=outcome.tree,
            files_changed=outcome.files_changed,
            lines_added=outcome.lines_added,
            lines_removed=outcome.lines_removed,
            changed=outcome.changed,
            diff=outcome.diff,
            branch_commit=outcome.branch_commit,
            then=after_saving(state),
        )
    ]


def human_answered(state: LoopState, yes: bool, comments: str) -> list[LoopEvent]:
    """A person answered, by file or by directive."""
    return [HumanJudged(about=state.asking, approved=yes, comments=clip(comments))]


def _confirm(report: Report, failure: Failure | None) -> HumanJudged:
    if failure is not None:
        return HumanJudged(about="criterion", approved=False, comments=f"nobody confirmed it: {failure.message}")
    return HumanJudged(about="criterion", approved=report.status == "PASS", comments=clip(report.summary))


def _conclude_crash(failure: Failure) -> Concluded:
    return Concluded(stop=StopReason.FAILED, detail=f"{LOST}: {failure.message}", crashed=True)


def _say_unverified(check: CheckFinished) -> str:
    said = check.failure.message if check.failure is not None else last_line(check.tail)
    moved = " because it changes the working tree" if check.moved else ""
    return f"`{check.command}` failed twice when the loop was completing{moved}" + (f": {said}" if said else "")


def _read(report: Report) -> IterationReport | Failure:
    """Read what the report adds, or say what is wrong with it."""
    try:
        return read_fields(report, IterationReport)
    except msgspec.ValidationError as error:
        name = "quality_score" if "quality_score" in str(error) else "done"
        wanted = {"quality_score": "a number from 0 to 100", "done": "true or false"}[name]
        return invalid_report(f"the report's {name} is {report.fields[name]!r}; it must be {wanted}")
