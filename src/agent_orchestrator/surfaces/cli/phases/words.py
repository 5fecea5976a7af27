"""A phased run's events in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_orchestrator.core.events import (
    BackoffEnded,
    Concluded,
    EditRefused,
    HumanAsked,
    HumanJudged,
    MergeStarted,
    QuestionsRaised,
)
from agent_orchestrator.core.units import say_count
from agent_orchestrator.surfaces.cli.phrases import because, clock_time, say_check, say_end
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, Words
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.changes import say_change
from agent_orchestrator.systems.phases.documents import remarks, state_document
from agent_orchestrator.systems.phases.state import PhasesState

_AGENTS = {
    "plan": "planner",
    "execute": "agent",
    "pre_task": "supervisor (before)",
    "post_task": "supervisor (after)",
    "on_demand": "supervisor (asked for)",
    "scan": "scanner",
    "repair": "agent",
}


def _tree_saved(event: e.TreeSaved) -> Phrase:
    if event.unavailable:
        return Phrase(event.step, f"git refuses: {event.unavailable}")
    if event.purpose in ("work", "base"):
        return Phrase(event.step, "the tree is kept", quiet=True)
    commit = event.branch_commit
    return Phrase(event.step, f"committed as {commit[:12]}" if commit is not None else "nothing to commit", quiet=commit is None)


def _agent_started(event: e.AgentStarted) -> Phrase:
    times = f", iteration {event.iteration}" if event.iteration else ""
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    return Phrase(event.step, f"{_AGENTS[event.purpose]} started{times}{again}")


def _agent_finished(event: e.AgentFinished) -> Phrase:
    return Phrase(event.step, say_end(_AGENTS[event.purpose], event, event.summary))


def _check_finished(event: e.CheckFinished) -> Phrase:
    again = ", it is run once more" if event.again else ""
    return Phrase(event.step, f"{say_check(f'`{event.command}`', event)}{again}")


def _checked(event: e.SupervisorChecked) -> Phrase:
    found = ", ".join(f"{one.type} ({one.severity})" for one in event.conflicts)
    return Phrase(event.step, f"supervisor says {event.verdict}{because(found or event.summary)}")


def _judged(event: HumanJudged) -> Phrase:
    return Phrase(event.step, f"{'approved' if event.approved else 'rejected'} by a person{because(event.comments)}")


def _findings(event: e.FindingsListed) -> Phrase:
    if event.fixed:
        return Phrase("review", "the scanner mended something")
    return Phrase("review", say_count(len(event.findings), "finding") if event.findings else "the scan is clean")


def _lists(event: e.ListsEdited) -> Phrase:
    told = [say_change(change) for change in event.changes]
    told += [f"done {entry.get('task')}" for entry in event.done]
    told += [f"to be done again {task}" for task in event.undone] + [f"skip {task}" for task in event.skipped]
    return Phrase("", f"edits adopted: {'; '.join(told)}")


_PHRASES: Phrases = {
    e.RunPlanned: lambda event: Phrase("", f"{event.name}: {say_count(event.phases, 'phase')}, {say_count(event.tasks, 'task')}"),
    e.SavingStarted: lambda event: Phrase(event.step, f"commits ({event.purpose})", quiet=True),
    e.TreeSaved: _tree_saved,
    e.AgentStarted: _agent_started,
    e.AgentFinished: _agent_finished,
    e.LearningsRecorded: lambda event: Phrase(event.task, f"learned: {'; '.join(one.lesson for one in event.learnings)}"),
    e.LaunchInterrupted: lambda event: Phrase(event.step, f"interrupted ({event.why})"),
    e.BackoffStarted: lambda event: Phrase(event.step, f"continues at {clock_time(event.until_us)}: {event.reason}"),
    BackoffEnded: lambda event: Phrase(event.step, "may continue", quiet=True),
    HumanAsked: lambda event: Phrase(event.step, f"waiting for an answer: {event.question}"),
    HumanJudged: _judged,
    QuestionsRaised: lambda event: Phrase("plan", f"the planner asks {say_count(len(event.questions), 'question')}"),
    e.PlanApproved: lambda event: Phrase("plan", "the plan is approved"),
    e.TaskStarted: lambda event: Phrase(event.task, f"started on {event.branch}" if event.branch else "started"),
    e.TaskBlocked: lambda event: Phrase(event.task, f"waits for files that task {event.by} holds"),
    MergeStarted: lambda event: Phrase(event.step, "is merged", quiet=True),
    e.MergeFinished: lambda event: Phrase(event.step, f"merge: {event.verdict}{because(event.detail)}"),
    e.CheckStarted: lambda event: Phrase(event.step, f"{event.criterion or event.purpose} is checked", quiet=True),
    e.CheckFinished: _check_finished,
    e.CriteriaReported: lambda event: Phrase(event.task, f"reported {event.status}", quiet=True),
    e.IterationFinished: lambda event: Phrase(
        event.task, f"iteration {event.iteration} " + (f"was not enough: {event.error}" if event.error else "met all criteria")
    ),
    e.SupervisorChecked: _checked,
    e.Intervened: lambda event: Phrase(event.task, f"{event.conflict_type} conflict, {event.action}: {event.resolution}"),
    e.PlanChanged: lambda event: Phrase(
        "", f"the plan was changed ({event.why}): {'; '.join(say_change(one) for one in event.changes)}"
    ),
    e.TaskFailed: lambda event: Phrase(event.task, f"failed: {event.why}"),
    e.TaskRetried: lambda event: Phrase(event.task, f"is tried again{because(event.comments)}"),
    e.TasksSkipped: lambda event: Phrase(event.tasks[0], f"skipped ({', '.join(event.tasks)}): {event.why}"),
    e.TaskCompleted: lambda event: Phrase(
        event.task, f"completed, checkpoint-{event.number:03d} at {event.git_sha[:12]} ({say_count(len(event.files), 'file')})"
    ),
    e.PhaseCompleted: lambda event: Phrase("", f"phase {event.phase + 1} is {'complete' if event.completed else 'skipped'}"),
    e.MilestoneRecorded: lambda event: Phrase("", f"milestone: {event.url}"),
    e.ReviewStarted: lambda event: Phrase("", "all phases are complete, the review begins"),
    e.FindingsListed: _findings,
    e.FindingSettled: lambda event: Phrase("review", f"a finding is {'left' if event.left else 'settled'}{because(event.left)}"),
    e.ReviewPassed: lambda event: Phrase("review", f"the review ended{because(event.left)}"),
    e.PullRequestRecorded: lambda event: Phrase("", f"pull request: {event.url}"),
    e.CheckRequested: lambda event: Phrase(event.task, "the supervisor is to look"),
    e.AgentGaveUp: lambda event: Phrase(event.step, f"cannot continue: {event.why}"),
    e.CheckAbandoned: lambda event: Phrase(event.step, f"continues without: {event.why}"),
    e.BoundsChanged: lambda event: Phrase("", "bounds: " + ", ".join(f"{name} {value}" for name, value in event.changes.items())),
    e.ListsEdited: _lists,
    e.AgentsDropped: lambda event: Phrase("", f"taken out by hand, spawned again: {', '.join(event.steps)}"),
    e.Rewound: lambda event: Phrase("", event.why),
    e.Archived: lambda event: Phrase("", "archived"),
    EditRefused: lambda event: Phrase("", f"edits refused: {'; '.join(event.problems[:3])}"),
    e.Imported: lambda event: Phrase("", f"taken over with {say_count(len(event.completed), 'completed task')}"),
    Concluded: lambda event: Phrase("", f"nothing more is tried: {event.detail}"),
}


def closing_lines(state: PhasesState) -> list[str]:
    """Say where the work is, what it cost, and what was left."""
    bounds = state_document(state).safety_bounds
    lines = [f"branch: {state.spec.branch}", f"cost: {bounds.cost_so_far}, time at work: {bounds.elapsed_time}"]
    if state.checkpoints:
        newest = state.checkpoints[-1]
        lines.append(f"last checkpoint: {newest.state_snapshot.removesuffix('.json')} ({newest.git_sha[:12]})")
    lines += [f"warning: {text}" for text in remarks(state)]
    if state.pull_request:
        lines.append(f"pull request: {state.pull_request}")
    return lines


def check_source(text: str, path: Path, home: Path | None) -> tuple[str, tuple[str, ...]]:
    """Check a task document."""
    from agent_orchestrator.runs.phases.options import parse_text

    parsed = parse_text(text, path, home or path.absolute().parent)
    size = f"{say_count(len(parsed.plan.phases), 'phase')}, {say_count(len(parsed.plan.tasks), 'task')}"
    return f"task document {parsed.plan.name}, {size}", parsed.warnings


def check_state(file: str, document: Any) -> str | list[str] | None:
    """Check an agent-state.json, or what its predecessor wrote."""
    from agent_orchestrator.systems.phases.decide.edits import is_old_format, read_state_document

    if not isinstance(document, dict) or not ("orchestrator" in document or is_old_format(document)):
        return None
    if isinstance(faults := read_state_document(document), list):
        return faults
    done = say_count(len(document["completed_tasks"]), "task")
    return f"the state of a run of phases, {document['orchestrator']['status']}, {done} completed"


WORDS = Words(phrases=_PHRASES, closing_lines=closing_lines, check_source=check_source, check_state=check_state)
