"""The words of the team: roles, what each may say, and what its report may add. Spelled as the seed spells them."""

from __future__ import annotations

from enum import StrEnum

from agent_orchestrator.core.report import ReportRule


class Role(StrEnum):
    """Who works; `active_agents` and AGENT_ID use these words."""

    PM = "project_manager"
    DEVELOPER = "developer"
    QA = "qa_expert"
    TECH_LEAD = "tech_lead"


class Purpose(StrEnum):
    """What an agent's turn is for."""

    PLAN = "plan"
    FINAL = "final"
    CONFIRM = "confirm"
    """The tech lead confirms the requirements that no check speaks for."""
    DEVELOP = "develop"
    QA = "qa"
    REVIEW = "review"
    CONSULT = "consult"
    """The tech lead helps a developer who is blocked."""


ROLE_OF = {
    Purpose.PLAN: Role.PM,
    Purpose.FINAL: Role.PM,
    Purpose.CONFIRM: Role.TECH_LEAD,
    Purpose.DEVELOP: Role.DEVELOPER,
    Purpose.QA: Role.QA,
    Purpose.REVIEW: Role.TECH_LEAD,
    Purpose.CONSULT: Role.TECH_LEAD,
}

WORDS: dict[Purpose, tuple[str, ...]] = {
    Purpose.PLAN: ("PLANNING_COMPLETE", "NEEDS_CLARIFICATION"),
    Purpose.FINAL: ("DONE", "CONTINUE"),
    Purpose.CONFIRM: ("APPROVED", "CHANGES_REQUESTED"),
    Purpose.DEVELOP: ("READY_FOR_QA", "READY_FOR_REVIEW", "BLOCKED", "PARTIAL"),
    Purpose.QA: ("PASS", "FAIL"),
    Purpose.REVIEW: ("APPROVED", "CHANGES_REQUESTED"),
    Purpose.CONSULT: ("UNBLOCKED",),
}

_REVIEW: dict[str, tuple[str, ...]] = {
    "feedback": ("string",),
    "issues": ("array",),
    "actionable_items": ("array",),
    "quality": ("object",),
}

FIELDS: dict[Purpose, dict[str, tuple[str, ...]]] = {
    Purpose.PLAN: {
        "mode": ("string",),
        "mode_reasoning": ("string",),
        "tasks": ("array",),
        "groups": ("array",),
        "questions": ("array",),
    },
    Purpose.FINAL: {"requirements": ("array",), "groups": ("array",), "tasks": ("array",)},
    Purpose.CONFIRM: {"requirements": ("array",), "feedback": ("string",), "issues": ("array",)},
    Purpose.DEVELOP: {"unit_tests": ("object",), "notes": ("string",), "blocker": ("string",)},
    Purpose.QA: {"test_results": ("object",), "failures": ("array",)},
    Purpose.REVIEW: _REVIEW,
    Purpose.CONSULT: _REVIEW,
}


def rule_of(purpose: Purpose, run: str, unit: str) -> ReportRule:
    """What the report of a turn must look like: a word that is not in its row fails the attempt."""
    return ReportRule(
        words={word: word for word in WORDS[purpose]},
        required=True,
        ids={"run_id": run, "step_id": unit, "agent": ROLE_OF[purpose].value},
        fields=FIELDS[purpose],
    )
