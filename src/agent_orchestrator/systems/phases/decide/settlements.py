"""Settles what the supervisor and the review found: an intervention per conflict, and the next step of the review."""

from __future__ import annotations

from agent_orchestrator.core.judging import Worth
from agent_orchestrator.systems.phases.changes import say_change
from agent_orchestrator.systems.phases.events import FindingSettled, Intervened, PhasesEvent, PlanChanged, SupervisorChecked
from agent_orchestrator.systems.phases.evolve.marks import next_command
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.supervision import AUTO_FIX, PASS, REFUSE, resolution_of
from agent_orchestrator.systems.phases.works import PhasesWork, ReviewWork


def list_interventions(verdict: SupervisorChecked, what: str, *, action: str = "", fixed: bool = False) -> list[PhasesEvent]:
    """Make one for each conflict; `action` overrides what the matrix says."""
    passed = verdict.action in (PASS, REFUSE)
    return [
        Intervened(
            task=verdict.task,
            check_type=verdict.check_type,
            conflict_type=one.type,
            severity=one.severity,
            action=action or (PASS if passed else one.action),
            resolution=resolution_of(one, what),
            fixed=fixed,
        )
        for one in verdict.conflicts
    ]


def settle_fix(verdict: SupervisorChecked, commit: str | None) -> list[PhasesEvent]:
    """Say of each conflict that it is mended in the commit, or that nothing turned out to be."""
    what = f"mended in {commit[:12]}" if commit is not None else "reported as mended, but nothing changed"
    return list_interventions(verdict, what, action=AUTO_FIX, fixed=commit is not None)


def replan(work: PhasesWork, by: str) -> list[PhasesEvent]:
    """Change the plan as the supervisor wants it."""
    verdict = work.verdict
    assert verdict is not None, "a verdict asks for another plan"
    said = "; ".join(say_change(change) for change in verdict.changes)
    found = "; ".join(one.recommendation or one.details or one.type for one in verdict.conflicts)
    changed = PlanChanged(changes=verdict.changes, why=f"{(verdict.summary or found or said).rstrip('. ')}; {by}")
    return [*list_interventions(verdict, f"the plan was changed ({said})"), changed]


def after_finding(state: PhasesState, work: PhasesWork, left: int) -> str:
    """Say what follows when a finding is settled or the scanner mended all, with `left` findings still open."""
    if left:
        return "repair"
    return "scan" if work.iteration < state.spec.plan.outer_max else "criteria"


def settle_finding(state: PhasesState, work: PhasesWork, left: str = "") -> FindingSettled:
    """Settle the finding at work: it was mended, or `left` says why not."""
    assert isinstance(work, ReviewWork), "a review settles findings"
    return FindingSettled(left=left, then=after_finding(state, work, len(work.findings) - 1))


def after_criterion(state: PhasesState, work: PhasesWork, worth: Worth) -> str:
    """Say what follows a criterion of the whole; '' where the next one does, or where it is run again."""
    if not isinstance(work, ReviewWork) or worth not in (Worth.PASSED, Worth.FAILED):
        return ""
    if next_command(state.spec.plan.criteria, work.at + 1) is not None:
        return ""
    if worth is Worth.PASSED and not work.failing:
        return "reviewed"
    # A criterion of the whole that fails is mended like any finding, as long as the outer loop may go on.
    return "repair" if state.spec.plan.outer_ralph and work.iteration < state.spec.plan.outer_max else "unmet"
