"""Reads what a supervisor reports. The type of a conflict decides how grave it is and what follows, not the agent.

A report that cannot be understood, or that asks for a change which cannot be made, fails the attempt.
"""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.forms import read_fields
from agent_orchestrator.core.report import Report
from agent_orchestrator.systems.phases.changes import note_advice, read_changes
from agent_orchestrator.systems.phases.events import SupervisorChecked
from agent_orchestrator.systems.phases.reports import ReportedConflict, Supervised
from agent_orchestrator.systems.phases.spec import PlanChange, PlanConflict
from agent_orchestrator.systems.phases.state import PhasesState

PASS, AUTO_FIX, RE_PLAN, REFUSE = "pass", "auto_fix", "re_plan", "refuse"

MATRIX = {
    "architecture": ("high", RE_PLAN),
    "dependency": ("high", RE_PLAN),
    "api": ("high", RE_PLAN),
    "security": ("critical", RE_PLAN),
    "pattern": ("low", AUTO_FIX),
}
"""The action for a conflict of each type."""


def read_verdict(state: PhasesState, report: Report, step: str, task: str, check_type: str) -> SupervisorChecked | str:
    """Read what was found and say what follows, or what is wrong with the report."""
    wanted = report.fields.get("recommended_changes")
    others = {name: value for name, value in report.fields.items() if name != "recommended_changes"}
    try:
        fields = read_fields(msgspec.structs.replace(report, fields=others), Supervised)
    except msgspec.ValidationError as error:
        return f"the supervisor's report has a wrong field: {error}"
    unknown = [one.type for one in fields.conflicts if one.type not in MATRIX]
    if unknown:
        return f"the supervisor's report has a conflict of type {unknown[0]!r}; it must be one of {', '.join(MATRIX)}"
    if report.status == "RE_PLAN" and not fields.conflicts:
        return "the supervisor's report says RE_PLAN and names no conflict"
    conflicts = tuple(_judge(state, one, report.status) for one in _all_conflicts(fields, report.status))
    action = _action(conflicts, report.status, auto_fix=state.spec.plan.supervision.auto_fix)
    known = {one.key for one in state.plan[task].criteria} if task in state.plan else set()
    denied = tuple(key for key, met in fields.criteria.items() if not met and key in known) if check_type == "post_task" else ()
    changes: tuple[PlanChange, ...] = ()
    affected = [one for one in fields.affected_tasks if one in state.plan]
    if action == RE_PLAN:
        read = _changes(state, fields, wanted, task, affected)
        if isinstance(read, str):
            return read
        changes = read
    return SupervisorChecked(
        step=step,
        task=task,
        check_type=check_type,
        verdict=report.status,
        action=REFUSE if denied and action == PASS else action,
        conflicts=conflicts,
        denied=denied,
        changes=changes,
        affected=tuple(affected),
        summary=report.summary[:500],
    )


def _all_conflicts(fields: Supervised, word: str) -> list[ReportedConflict]:
    """List the conflicts; what was mended without naming one is a conflict of a pattern."""
    if word == "AUTO_FIX" and not fields.conflicts:
        made = [
            ReportedConflict("pattern", details=f"{fix.file}: {fix.issue}", recommendation=fix.fix) for fix in fields.auto_fixes
        ]
        return made or [ReportedConflict("pattern", details="the supervisor mended something and did not say what")]
    return fields.conflicts


def _judge(state: PhasesState, one: ReportedConflict, word: str) -> PlanConflict:
    severity, action = MATRIX[one.type]
    said = []
    if one.severity and one.severity.lower() != severity:
        said.append(f"severity {one.severity}")
    if word != "PASS" and word != action.upper():
        said.append(word)
    return PlanConflict(
        type=one.type,
        severity=severity,
        action=PASS if word == "PASS" else action,
        details=one.details.strip()[:500],
        recommendation=one.recommendation.strip()[:500],
        differs=" and ".join(said),
    )


def _action(conflicts: tuple[PlanConflict, ...], word: str, *, auto_fix: bool) -> str:
    if word == "PASS" or not conflicts:
        return PASS
    if any(one.action == RE_PLAN for one in conflicts):
        return RE_PLAN
    return AUTO_FIX if auto_fix else PASS


def _changes(
    state: PhasesState, fields: Supervised, wanted: object, task: str, affected: list[str]
) -> tuple[PlanChange, ...] | str:
    """Read the changes that are asked for; only where they count, each with its own fault."""
    if isinstance(wanted, list):
        return read_changes(state, wanted)
    text = wanted.strip() if isinstance(wanted, str) else ""
    advice = [one.recommendation or one.details for one in fields.conflicts if MATRIX[one.type][1] == RE_PLAN]
    text = text or "; ".join(part for part in advice if part)
    open_tasks = [one for one in affected or [task] if one in state.plan and one not in state.completed]
    if not text or not open_tasks:
        return "the supervisor's report says RE_PLAN and neither what to change nor in which open task"
    return note_advice(state, open_tasks, text)


def resolution_of(conflict: PlanConflict, what: str) -> str:
    """Say how a conflict was settled, with what the report would have had instead."""
    about = conflict.recommendation or conflict.details
    parts = [what, about] if about else [what]
    text = ": ".join(parts)
    return f"{text} (the report said {conflict.differs})" if conflict.differs else text
