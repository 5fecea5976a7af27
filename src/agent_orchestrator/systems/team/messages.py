"""The messages between the roles, field by field as the seed has them. What is not known is left out, never invented."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.team.roles import Counts, Issue, QaResults, ReviewReport, Role
from agent_orchestrator.systems.team.spec import moment
from agent_orchestrator.systems.team.state import Group, TeamState

DEV_TO_QA, QA_TO_TECHLEAD, TECHLEAD_TO_DEV = "dev_to_qa", "qa_to_techlead", "techlead_to_dev"

ENDS = {
    DEV_TO_QA: (Role.DEVELOPER, Role.QA),
    QA_TO_TECHLEAD: (Role.QA, Role.TECH_LEAD),
    TECHLEAD_TO_DEV: (Role.TECH_LEAD, Role.DEVELOPER),
}
_KINDS = ("integration_tests", "contract_tests", "e2e_tests")


def ready_for_qa(state: TeamState, group: Group, files: tuple[str, ...], commits: list[str], now_us: int) -> dict[str, Any]:
    """Write developer → QA: here is the work."""
    context: dict[str, Any] = {"branch_name": group.branch_name, "files_modified": list(files), "commits": commits}
    units = group.test_results.get("unit_tests")
    if units is not None:
        context["unit_tests_status"] = f"{units['passed']}/{units['total']} passing"
    context["notes"] = group.notes or group.summary
    head = _head(state, DEV_TO_QA, group, now_us, f"{group.name} Implementation Ready for QA")
    return {**head, "status": "READY_FOR_QA", "context": context, "read": False}


def qa_results(state: TeamState, group: Group, results: QaResults, *, passed: bool, took_us: int, now_us: int) -> dict[str, Any]:
    """Write QA → tech lead: this is what the tests say."""
    counted = {kind: getattr(results, kind) for kind in _KINDS}
    said = "All Tests Passed" if passed else "Tests Failed"
    head = _head(state, QA_TO_TECHLEAD, group, now_us, f"{group.name} QA Results - {said}")
    return {
        **head,
        "result": "PASS" if passed else "FAIL",
        "test_results": {
            **{kind: _passed(counts) for kind, counts in counted.items() if counts is not None},
            "total_time": spent(took_us),
        },
        "developer_context": {
            "files_modified": list(group.files_modified),
            "implementation_summary": group.summary or group.notes,
        },
        "read": False,
    }


def review_decision(
    state: TeamState, group: Group, decision: str, judged: ReviewReport, summary: str, now_us: int
) -> dict[str, Any]:
    """Write tech lead → developer: what was decided, and what is to be done."""
    said = {"approved": "Approved", "changes_requested": "Changes Requested", "unblocked": "Unblocked"}[decision]
    head = _head(state, TECHLEAD_TO_DEV, group, now_us, f"{group.name} Review - {said}")
    return {
        **head,
        "decision": decision,
        "feedback": judged.feedback or summary,
        "issues": [_plain(issue) for issue in judged.issues],
        "actionable_items": list(judged.actionable_items),
        "read": False,
    }


def _head(state: TeamState, box: str, group: Group, now_us: int, subject: str) -> dict[str, Any]:
    sender, receiver = ENDS[box]
    return {
        "id": message_id(state, now_us),
        "group_id": group.unit,
        "from": sender.value,
        "to": receiver.value,
        "timestamp": stamp(now_us),
        "subject": subject,
    }


def message_id(state: TeamState, now_us: int) -> str:
    """Make msg_20250106_100800; the second one of a second ends in `_2`."""
    name = f"msg_{moment(now_us)}"
    return f"{name}_{state.same_second + 1}" if name == state.last_message else name


def spent(took_us: int) -> str:
    """Say 2m 15s, as the seed has it."""
    seconds = max(0, took_us) // US
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}h {minutes}m {left}s" if hours else f"{minutes}m {left}s"


def _passed(counts: Counts) -> str:
    return f"{counts.passed}/{counts.total} passed"


def _plain(issue: Issue) -> dict[str, Any]:
    return {name: value for name in issue.__struct_fields__ if (value := getattr(issue, name)) is not None}
