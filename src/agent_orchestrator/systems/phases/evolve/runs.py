"""Facts about the run as a whole: approved, its phases and review, changed by people, rewound, ended, archived."""

from __future__ import annotations

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.events import Concluded, Ended, QuestionsRaised, Resumed
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US, read_count
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.documents import folder_of, number_of
from agent_orchestrator.systems.phases.evolve.marks import check_globals, drop_work, go_on_reviewing, warn
from agent_orchestrator.systems.phases.evolve.tasks import apply_changes, first_open_phase
from agent_orchestrator.systems.phases.publication import PULL_REQUEST_FILE, first_step, folder_url, milestone_file
from agent_orchestrator.systems.phases.spec import Lesson, Publication
from agent_orchestrator.systems.phases.state import (
    CheckpointEntry,
    CompletedTask,
    Milestone,
    PhasesState,
    PhasesStatus,
    Supervisor,
)
from agent_orchestrator.systems.phases.works import PLAN, PULL_REQUEST, REVIEW, MilestoneWork, ReviewWork, milestone_unit


def _questions_raised(state: PhasesState, event: QuestionsRaised, at_us: int) -> None:
    state.questions = event.questions
    state.works[PLAN].due = "questions" if event.questions else "approve"


def _plan_approved(state: PhasesState, event: e.PlanApproved, at_us: int) -> None:
    drop_work(state, PLAN)
    state.stage = PhasesStatus.EXECUTING


def _bounds_changed(state: PhasesState, event: e.BoundsChanged, at_us: int) -> None:
    state.bounds = change_bounds(state.bounds, event.changes)
    if "max_parallel" in event.changes:
        state.max_parallel = read_count(event.changes["max_parallel"], "max_parallel")
    if "publish" in event.changes:
        _publishing_changed(state, typed.convert(event.changes["publish"], Publication))


def _publishing_changed(state: PhasesState, said: Publication) -> None:
    """Change what is published from now on; a milestone at work begins anew."""
    state.spec = msgspec.structs.replace(state.spec, **msgspec.structs.asdict(said))
    for work in state.works.values():
        if isinstance(work, MilestoneWork):
            state.doing.drop(work.unit)
            work.due = first_step(state, work)


def _lists_edited(state: PhasesState, event: e.ListsEdited, at_us: int) -> None:
    apply_changes(state, event.changes)
    for entry in event.done:
        done = typed.convert(entry, CompletedTask)
        drop_work(state, done.task)
        state.skipped.pop(done.task, None)
        state.completed[done.task] = done
    for task in event.undone:
        state.completed.pop(task, None)
    for task in event.skipped:
        drop_work(state, task)
        state.skipped[task] = "taken out of the state file by hand"
    if state.stage is PhasesStatus.EXECUTING:
        state.phase = first_open_phase(state)


def _agents_dropped(state: PhasesState, event: e.AgentsDropped, at_us: int) -> None:
    for step in event.steps:
        state.doing.drop(step)
        work = state.works[step]
        work.due, work.asking, work.session = "again", "", None


def _rewound(state: PhasesState, event: e.Rewound, at_us: int) -> None:
    kept = state.snapshots[event.to]
    for unit in list(state.works):
        drop_work(state, unit)
    for effect in list(state.doing):
        state.doing.drop(effect.unit)
    state.plan = {task.id: task for task in kept.plan}
    state.completed = {done.task: done for done in kept.completed}
    state.skipped = dict(kept.skipped)
    state.supervisor = msgspec.structs.replace(kept.supervisor, interventions=list(kept.supervisor.interventions))
    del state.learnings[kept.learnings :]
    del state.milestones[kept.milestones :]
    state.checkpoints = list(kept.checkpoints)
    state.phase, state.start, state.stage = kept.phase, kept.git_sha, PhasesStatus.EXECUTING
    state.ended_us, state.conclusion, state.trouble, state.pull_request = None, None, "", ""
    state.wanted_checks, state.failures, state.replans, state.comments = [], {}, {}, {}


def _resumed(state: PhasesState, event: Resumed, at_us: int) -> None:
    state.lifecycle.evolve(event)
    state.trouble = ""


def _concluded(state: PhasesState, event: Concluded, at_us: int) -> None:
    for effect in list(state.doing):
        state.doing.drop(effect.unit)
    for work in state.works.values():
        work.due = None
    state.conclusion = (event.stop, event.detail)


def _ended(state: PhasesState, event: Ended, at_us: int) -> None:
    for unit in list(state.works):
        drop_work(state, unit)
    state.ended_us = at_us if state.ended_us is None else state.ended_us
    state.lifecycle.evolve(event)


def _archived(state: PhasesState, event: e.Archived, at_us: int) -> None:
    before = folder_url(state, folder_of(state))
    state.archived = True
    after = folder_url(state, folder_of(state))
    state.milestones = [
        msgspec.structs.replace(one, issue_url=one.issue_url.replace(before, after, 1)) for one in state.milestones
    ]
    state.pull_request = state.pull_request.replace(before, after, 1)


def _imported(state: PhasesState, event: e.Imported, at_us: int) -> None:
    done = [typed.convert(entry, CompletedTask) for entry in event.completed]
    state.completed = {one.task: one for one in done}
    state.supervisor = typed.convert(event.supervisor, Supervisor)
    state.learnings = [typed.convert(one, Lesson) for one in event.learnings]
    state.milestones = [typed.convert(one, Milestone) for one in event.milestones]
    state.checkpoints = [typed.convert(one, CheckpointEntry) for one in event.checkpoints]
    state.numbered = max((number_of(one.state_snapshot) for one in state.checkpoints), default=0)
    state.warnings = list(event.warnings)
    state.cost_usd, state.unmetered = event.cost_usd, event.unmetered
    state.elapsed_us = state.doing.worked_us = int(event.elapsed_s * US)  # What was worked elsewhere counts under the limit.
    state.started_us = event.started_us if event.started_us is not None else state.started_us
    state.ended_us = event.ended_us
    state.stage = PhasesStatus(event.stage)
    if state.stage is not PhasesStatus.PLANNING:
        drop_work(state, PLAN)
        state.start = event.start or None
        state.phase = len(state.spec.plan.phases)
        state.phase = first_open_phase(state)


def _phase_completed(state: PhasesState, event: e.PhaseCompleted, at_us: int) -> None:
    known = any(one.phase == event.phase for one in state.milestones)
    if not event.completed or known:
        state.phase = event.phase + 1
        return
    unit = milestone_unit(event.phase)
    _begin_milestone(state, MilestoneWork(unit=unit, phase=event.phase))


def _begin_milestone(state: PhasesState, work: MilestoneWork) -> None:
    work.due = first_step(state, work)
    state.open_work(work)


def _milestone_recorded(state: PhasesState, event: e.MilestoneRecorded, at_us: int) -> None:
    drop_work(state, milestone_unit(event.phase))
    state.phase = event.phase + 1
    name = state.spec.plan.phases[event.phase].name
    state.milestones.append(Milestone(phase=event.phase, name=name, completed=stamp(at_us), issue_url=event.url))
    if event.body:
        state.files[milestone_file(event.phase)] = event.body
    warn(state, event.problem)


def _review_started(state: PhasesState, event: e.ReviewStarted, at_us: int) -> None:
    state.stage = PhasesStatus.REVIEWING
    work = ReviewWork(unit=REVIEW, looping=state.spec.plan.outer_ralph)
    state.open_work(work)
    if work.looping:
        work.iteration, work.due = 1, "scan"
    else:
        check_globals(state, work)


def _findings_listed(state: PhasesState, event: e.FindingsListed, at_us: int) -> None:
    work = _review(state)
    work.findings, work.failing = list(event.findings), []
    if event.fixed:
        work.due = "mend"
    elif work.findings:
        work.due = "repair"
    else:
        check_globals(state, work)


def _finding_settled(state: PhasesState, event: e.FindingSettled, at_us: int) -> None:
    work = _review(state)
    state.doing.drop(work.unit)
    finding = work.findings.pop(0)
    if event.left:
        work.left.append(f"{finding.issue} ({event.left})")
    go_on_reviewing(state, work, event.then)


def _review_passed(state: PhasesState, event: e.ReviewPassed, at_us: int) -> None:
    drop_work(state, REVIEW)
    if event.left:
        warn(state, f"Left by the review: {event.left}")
    _begin_milestone(state, MilestoneWork(unit=PULL_REQUEST))


def _pull_request_recorded(state: PhasesState, event: e.PullRequestRecorded, at_us: int) -> None:
    drop_work(state, PULL_REQUEST)
    state.pull_request = event.url
    if event.body:
        state.files[PULL_REQUEST_FILE] = event.body
    warn(state, event.problem)


def _review(state: PhasesState) -> ReviewWork:
    work = state.works[REVIEW]
    assert isinstance(work, ReviewWork), "the review is at work"
    return work


RUN_FACTS: Facts = {
    e.PhaseCompleted: _phase_completed,
    e.MilestoneRecorded: _milestone_recorded,
    e.ReviewStarted: _review_started,
    e.FindingsListed: _findings_listed,
    e.FindingSettled: _finding_settled,
    e.ReviewPassed: _review_passed,
    e.PullRequestRecorded: _pull_request_recorded,
    QuestionsRaised: _questions_raised,
    e.PlanApproved: _plan_approved,
    e.BoundsChanged: _bounds_changed,
    e.ListsEdited: _lists_edited,
    e.AgentsDropped: _agents_dropped,
    e.Rewound: _rewound,
    Concluded: _concluded,
    e.Archived: _archived,
    e.Imported: _imported,
    Resumed: _resumed,
    Ended: _ended,
}
