"""The words of the team: roles, and what each may say. Spelled as the seed spells them."""

from __future__ import annotations

from enum import StrEnum

from agent_orchestrator.core.report import ReportRule, common_words


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

COMPLETED: dict[Purpose, str] = {Purpose.DEVELOP: "READY_FOR_QA"}
"""What a bare COMPLETED means: for all others a judgement is asked for, and saying that one is done is none."""


def rule_of(purpose: Purpose, run: str, unit: str) -> ReportRule:
    """What the report of a turn must look like: a word that is not in its row fails the attempt."""
    return ReportRule(
        words={word: word for word in WORDS[purpose]},
        aliases=common_words(WORDS[purpose], completed=COMPLETED.get(purpose)),
        required=True,
        ids={"run_id": run, "step_id": unit, "agent": ROLE_OF[purpose].value},
        form=purpose.value,
    )
