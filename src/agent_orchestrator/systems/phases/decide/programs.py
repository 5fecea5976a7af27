"""Decides what follows the end of a command, a tool, a commit or a merge."""

from __future__ import annotations

from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import CheckEnded, CheckpointEnded, MergeEnded, MergeVerdict
from agent_orchestrator.core.judging import Worth, judge_check
from agent_orchestrator.core.launch_events import check_fields
from agent_orchestrator.systems.phases.decide.settlements import after_criterion, after_finding, settle_finding, settle_fix
from agent_orchestrator.systems.phases.events import (
    CheckFinished,
    IterationFinished,
    LaunchInterrupted,
    MergeFinished,
    MilestoneRecorded,
    PhasesEvent,
    PullRequestRecorded,
    TaskCompleted,
    TreeSaved,
)
from agent_orchestrator.systems.phases.publication import (
    PULL_REQUEST_FILE,
    file_url,
    milestone_body,
    milestone_file,
    pull_request_body,
    read_url,
)
from agent_orchestrator.systems.phases.spec import overlaps
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import MilestoneWork, ReviewWork, TaskWork

DIFF_KEPT = 8_000
ERROR_CHARS = 4_000


def settle_merge(state: PhasesState, outcome: MergeEnded, now_us: int) -> list[PhasesEvent]:
    """Settle a merge: the task's work is on the run's branch, or why it is not."""
    work = state.works[unit_of(outcome.effect)]
    assert isinstance(work, TaskWork), "a task is merged"
    verdict = outcome.verdict
    held = verdict in (MergeVerdict.HELD, MergeVerdict.UNAVAILABLE)
    finished = MergeFinished(step=work.unit, verdict=verdict.value, detail=outcome.detail, again=outcome.again, held=held)
    if verdict is MergeVerdict.LANDED:
        sha = outcome.commit or ""
        return [finished, TaskCompleted(task=work.task, number=state.numbered + 1, git_sha=sha, files=work.files)]
    if outcome.again or held:
        return [finished]
    into = state.spec.branch
    return [finished, _failed(work, f"{outcome.detail}; merge {into} into this branch and resolve it:\n{outcome.conflict_text}")]


def _failed(work: TaskWork, error: str) -> IterationFinished:
    return IterationFinished(task=work.task, iteration=work.iteration, met=dict(work.met), error=error[:ERROR_CHARS])


def _trespassed(state: PhasesState, work: TaskWork, files: tuple[str, ...]) -> str:
    """Say what it changed that another task at work holds; '' when there is nothing."""
    for other in state.active_tasks:
        if other.task != work.task:
            taken = [path for path in files if any(overlaps(path, held) for held in state.plan[other.task].files)]
            if taken:
                return f"{', '.join(taken[:5])} was changed, which task {other.task} holds: leave it as it was"
    return ""


def settle_check(state: PhasesState, outcome: CheckEnded, now_us: int) -> list[PhasesEvent]:
    """Settle the end of a command: the evidence, whether it is run once more, and what follows for a milestone."""
    work = state.works[unit_of(outcome.effect)]
    worth = judge_check(outcome, work.reruns)
    finished = CheckFinished(
        step=work.unit,
        purpose=work.purpose,
        criterion=work.criterion,
        command=work.command,
        again=worth is Worth.AGAIN,
        worth=worth,
        then=after_criterion(state, work, worth),
        **check_fields(outcome),
    )
    if worth is Worth.STOPPED:
        return [finished, LaunchInterrupted(step=work.unit, why="stopped")]
    if isinstance(work, MilestoneWork) and not finished.again:
        return [finished, *_published(state, work, finished)]
    return [finished]


def _published(state: PhasesState, work: MilestoneWork, tool: CheckFinished) -> list[PhasesEvent]:
    url = read_url(work.purpose, tool.tail) if tool.passed and work.purpose != "push" else None
    if url is not None:
        if work.phase is None:
            return [PullRequestRecorded(url=url)]
        return [MilestoneRecorded(phase=work.phase, url=url)]
    gone = not tool.passed if work.purpose == "push" else work.purpose == "create"
    if not gone:
        return []
    lines = [line.strip() for line in tool.tail.splitlines() if line.strip()]
    told = next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else f"exit code {tool.exit_code}"
    )
    said = tool.failure.message if tool.failure is not None else told
    return [record_as_file(state, work, f"{tool.command} failed: {said[:300]}")]


def record_as_file(state: PhasesState, work: MilestoneWork, problem: str) -> PhasesEvent:
    """Record a milestone or the pull request as a file below `.claude/milestones/`."""
    if work.phase is None:
        url = file_url(state, PULL_REQUEST_FILE)
        return PullRequestRecorded(url=url, body=pull_request_body(state), problem=problem)
    url = file_url(state, milestone_file(work.phase))
    return MilestoneRecorded(phase=work.phase, url=url, body=milestone_body(state, work.phase), problem=problem)


def settle_tree(state: PhasesState, outcome: CheckpointEnded, now_us: int) -> list[PhasesEvent]:
    """Settle a tree that is kept or committed, or that git refused."""
    work = state.works[unit_of(outcome.effect)]
    files = tuple(change.path for change in outcome.changed)
    mended = work.purpose == "mend" and isinstance(work, ReviewWork) and not work.findings and not outcome.unavailable
    saved = TreeSaved(
        step=work.unit,
        purpose=work.purpose,
        unavailable=outcome.unavailable,
        commit=outcome.commit,
        branch_commit=outcome.branch_commit,
        head=outcome.head,
        files=files,
        diff=outcome.diff[:DIFF_KEPT] if work.purpose == "work" else "",
        then=after_finding(state, work, 0) if mended else "",
    )
    events: list[PhasesEvent] = [saved]
    if outcome.unavailable:
        return events
    if work.purpose == "checkpoint" and isinstance(work, TaskWork):
        trespassed = _trespassed(state, work, files)
        if trespassed:
            events.append(_failed(work, trespassed))
        elif not work.branch:
            sha = outcome.branch_commit or outcome.commit or ""
            events.append(TaskCompleted(task=work.task, number=state.numbered + 1, git_sha=sha, files=files))
    elif work.purpose == "fix" and work.verdict is not None:
        events += settle_fix(work.verdict, outcome.branch_commit)
    elif work.purpose == "mend" and isinstance(work, ReviewWork) and work.findings:
        events.append(settle_finding(state, work))
    return events
