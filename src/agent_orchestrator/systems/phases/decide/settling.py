"""How a supervisor's conflicts are settled: each leaves one intervention that says what was done about it."""

from __future__ import annotations

from agent_orchestrator.systems.phases.events import Intervened, PhasesEvent, PlanChanged, SupervisorChecked
from agent_orchestrator.systems.phases.replanning import say_change
from agent_orchestrator.systems.phases.supervising import AUTO_FIX, PASS, resolution_of
from agent_orchestrator.systems.phases.works import Verdict, Work


def interventions(verdict: SupervisorChecked | Verdict, what: str, *, action: str | None = None) -> list[PhasesEvent]:
    """One for each conflict; `action` overrides what the matrix says where nothing came of it."""
    return [
        Intervened(
            task=verdict.task,
            check_type=verdict.check_type,
            conflict_type=one.type,
            severity=one.severity,
            action=action or (PASS if verdict.action in (PASS, "refuse") else one.action),
            resolution=resolution_of(one, what),
        )
        for one in verdict.conflicts
    ]


def fixed(verdict: Verdict, commit: str | None) -> list[PhasesEvent]:
    """What was mended is committed, or it turned out that nothing was."""
    what = f"mended in {commit[:12]}" if commit is not None else "reported as mended, but nothing changed"
    return [
        Intervened(
            task=verdict.task,
            check_type=verdict.check_type,
            conflict_type=one.type,
            severity=one.severity,
            action=AUTO_FIX,
            resolution=resolution_of(one, what),
            fixed=commit is not None,
        )
        for one in verdict.conflicts
    ]


def replanned(work: Work, by: str) -> list[PhasesEvent]:
    """The plan is changed as the supervisor wants it."""
    verdict = work.verdict
    assert verdict is not None, "a verdict asks for another plan"
    said = "; ".join(say_change(change) for change in verdict.changes)
    found = "; ".join(one.recommendation or one.details or one.type for one in verdict.conflicts)
    changed = PlanChanged(changes=verdict.changes, why=f"{(verdict.summary or found or said).rstrip('. ')}; {by}")
    return [*interventions(verdict, f"the plan was changed ({said})"), changed]
