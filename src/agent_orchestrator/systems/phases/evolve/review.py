"""Facts about phases, milestones, the outer loop and the pull request."""

from __future__ import annotations

from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.phases import events as e
from agent_orchestrator.systems.phases.evolve.marks import drop_work, next_command, warn
from agent_orchestrator.systems.phases.publishing import PULL_REQUEST_FILE, first_step, milestone_file
from agent_orchestrator.systems.phases.state import Milestone, PhasesState, Status
from agent_orchestrator.systems.phases.works import PULL_REQUEST, REVIEW, MilestoneWork, ReviewWork, milestone_unit


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
    state.stage = Status.REVIEWING
    work = ReviewWork(unit=REVIEW, looping=state.spec.plan.outer_ralph)
    state.open_work(work)
    if work.looping:
        work.iteration, work.due = 1, "scan"
    else:
        check_globals(state, work)


def check_globals(state: PhasesState, work: ReviewWork) -> None:
    """The criteria of the whole are run, one after the other."""
    work.looping, work.failing = False, []
    at = next_command(state.spec.plan.criteria, 0)
    work.at, work.due = at or 0, "criteria" if at is not None else "reviewed"


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


def go_on_reviewing(state: PhasesState, work: ReviewWork, then: str) -> None:
    """The next finding, the next scan, or, when the outer loop has made its iterations, the criteria of the whole."""
    match then or _then_in_0_1_0(state, work):
        case "repair":
            work.due = "repair"
        case "scan":
            work.iteration += 1
            work.due = "scan"
        case _:
            work.left.append(f"the outer loop ended after {say_count(work.iteration, 'iteration')} without a clean scan")
            check_globals(state, work)


def _then_in_0_1_0(state: PhasesState, work: ReviewWork) -> str:
    """For journals that do not say what followed: never changed."""
    if work.findings:
        return "repair"
    return "scan" if work.iteration < state.spec.plan.outer_max else "criteria"


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


REVIEW_FACTS: Facts = {
    e.PhaseCompleted: _phase_completed,
    e.MilestoneRecorded: _milestone_recorded,
    e.ReviewStarted: _review_started,
    e.FindingsListed: _findings_listed,
    e.FindingSettled: _finding_settled,
    e.ReviewPassed: _review_passed,
    e.PullRequestRecorded: _pull_request_recorded,
}
