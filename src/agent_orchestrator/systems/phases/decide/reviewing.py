"""Says how a review goes on: mend the next finding, scan again, look at the criteria of the whole, or end."""

from __future__ import annotations

from agent_orchestrator.core.judging import Worth
from agent_orchestrator.systems.phases.events import FindingSettled
from agent_orchestrator.systems.phases.evolve.marks import next_command
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import ReviewWork, Work


def after_finding(state: PhasesState, work: Work, left: int) -> str:
    """Say what follows when a finding is settled or the scanner mended all, with `left` findings still open."""
    if left:
        return "repair"
    return "scan" if work.iteration < state.spec.plan.outer_max else "criteria"


def settle_finding(state: PhasesState, work: Work, left: str = "") -> FindingSettled:
    """Settle the finding at work: it was mended, or `left` says why not."""
    assert isinstance(work, ReviewWork), "a review settles findings"
    return FindingSettled(left=left, then=after_finding(state, work, len(work.findings) - 1))


def after_criterion(state: PhasesState, work: Work, worth: Worth) -> str:
    """Say what follows a criterion of the whole; '' where the next one does, or where it is run again."""
    if not isinstance(work, ReviewWork) or worth not in (Worth.PASSED, Worth.FAILED):
        return ""
    if next_command(state.spec.plan.criteria, work.at + 1) is not None:
        return ""
    if worth is Worth.PASSED and not work.failing:
        return "reviewed"
    # A criterion of the whole that fails is mended like any finding, as long as the outer loop may go on.
    return "repair" if state.spec.plan.outer_ralph and work.iteration < state.spec.plan.outer_max else "unmet"
