"""The roles: their words, spelled as the seed spells them, and the fields that each adds to its report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from agent_orchestrator.core.failure import Failure, invalid_report
from agent_orchestrator.core.forms import Forms, read_fields
from agent_orchestrator.core.report import Report, ReportRule, common_words

T = TypeVar("T")


class Role(StrEnum):
    """The roles; `active_agents` and AGENT_ID use these words."""

    PM = "project_manager"
    DEVELOPER = "developer"
    QA = "qa_expert"
    TECH_LEAD = "tech_lead"


class Purpose(StrEnum):
    """The purpose of an agent's turn."""

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
"""The meaning of a bare COMPLETED: all others are asked for a judgement, and saying that one is done is none."""


def rule_of(purpose: Purpose, run: str, unit: str) -> ReportRule:
    """Give the rule for the report of a turn: a word that is not in its row fails the attempt."""
    return ReportRule(
        words={word: word for word in WORDS[purpose]},
        aliases=common_words(WORDS[purpose], completed=COMPLETED.get(purpose)),
        required=True,
        ids={"run_id": run, "step_id": unit, "agent": ROLE_OF[purpose].value},
        form=purpose.value,
    )


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts of tests; `failed` follows from the others when it is left out."""

    total: int
    passed: int
    failed: int | None = None

    def plain(self) -> dict[str, int]:
        """Give the counts as group_status.json has them."""
        return {"total": self.total, "passed": self.passed, "failed": self._failed}

    def fault(self) -> str:
        """Say why these numbers cannot be; nothing when they can."""
        if self.total < 0 or self.passed < 0 or self._failed < 0 or self.passed + self._failed > self.total:
            return f"{self.passed} passed and {self._failed} failed of {self.total} cannot be"
        return ""

    @property
    def _failed(self) -> int:
        return self.failed if self.failed is not None else self.total - self.passed


class Issue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the tech lead wants changed."""

    priority: Literal["critical", "high", "medium", "low"] | None = None
    title: str | None = None
    location: Annotated[str | None, Meta(examples=["a.py:45"])] = None
    description: str | None = None
    fix_suggestion: str | None = None

    def line(self) -> str:
        """Say the issue in a line, for the developer."""
        head = " ".join(part for part in (f"[{self.priority}]" if self.priority else "", self.title or "") if part)
        where = f" ({self.location})" if self.location else ""
        said = ": ".join(part for part in (f"{head}{where}".strip(), self.description or "") if part)
        return f"{said}; suggestion: {self.fix_suggestion}" if self.fix_suggestion else said


class Quality(msgspec.Struct, frozen=True, omit_defaults=True):
    """Numbers of a review."""

    code_quality_score: Annotated[float | None, Meta(examples=[8.5])] = None
    security_issues_count: int | None = None


class Claim(msgspec.Struct, frozen=True):
    """Somebody's word on one requirement."""

    text: Annotated[str, Meta(description="The requirement, in the words in which it was given.")]
    met: bool
    evidence: Annotated[str, Meta(description="What shows it.")] = ""


class DeveloperReport(msgspec.Struct, frozen=True):
    """A developer's fields."""

    unit_tests: Annotated[
        Counts | None, Meta(description="How many you ran.", examples=[{"total": 12, "passed": 12, "failed": 0}])
    ] = None
    notes: Annotated[str, Meta(description="What QA and the tech lead should know.")] = ""
    blocker: Annotated[str, Meta(description="With BLOCKED: what you need the tech lead for.")] = ""


class QaResults(msgspec.Struct, frozen=True):
    """Results by kind of test."""

    integration_tests: Counts | None = None
    contract_tests: Counts | None = None
    e2e_tests: Counts | None = None


class QaReport(msgspec.Struct, frozen=True):
    """QA's fields."""

    test_results: Annotated[QaResults, Meta(description="How many tests of each kind you ran.")] = QaResults()
    failures: Annotated[list[str], Meta(description="With FAIL: each a sentence that says what is wrong and how to see it.")] = []


class ReviewReport(msgspec.Struct, frozen=True):
    """The tech lead's fields."""

    feedback: Annotated[str, Meta(description="What the developer should know, or how to go on.")] = ""
    issues: Annotated[list[Issue], Meta(description="What is to be changed.")] = []
    actionable_items: Annotated[list[str], Meta(description="What is to be done, one thing each.")] = []
    quality: Annotated[Quality, Meta(description="What you make of the code: a score from 0 to 10.")] = Quality()


class ConfirmReport(msgspec.Struct, frozen=True):
    """The tech lead's fields when requirements are to be confirmed."""

    requirements: Annotated[list[Claim], Meta(description="Each requirement that you were asked about.")] = []
    feedback: Annotated[str, Meta(description="What the project manager should know.")] = ""
    issues: Annotated[list[Issue], Meta(description="What is missing or wrong.")] = []


class ReportedGroup(msgspec.Struct, frozen=True):
    """A group of tasks that one developer works on."""

    id: Annotated[str, Meta(examples=["A"])]
    name: str = ""
    tasks: Annotated[list[str], Meta(description="Ids of tasks.", examples=[["T1"]])] = []
    files_affected: Annotated[list[str], Meta(examples=[["a.py"]])] = []
    branch_name: Annotated[str | None, Meta(examples=["feature/group-A"])] = None
    can_parallel: bool = True
    depends_on: Annotated[list[str], Meta(description="Ids of groups that have to be merged first.", examples=[[]])] = []
    complexity: Literal["low", "medium", "high"] | None = None
    estimated_effort_minutes: Annotated[float | None, Meta(examples=[10])] = None


class ReportedTask(msgspec.Struct, frozen=True):
    """One task of a plan."""

    id: Annotated[str, Meta(examples=["T1"])]
    description: str = ""
    group_id: Annotated[str, Meta(examples=["A"])] = ""


class Proposal(msgspec.Struct, frozen=True):
    """The work that a project manager wants done."""

    mode: Annotated[
        Literal["simple", "parallel"] | None,
        Meta(description="Whether one developer does it all or several work side by side.", examples=["parallel"]),
    ] = None
    mode_reasoning: Annotated[str, Meta(description="Why that mode.")] = ""
    tasks: Annotated[list[ReportedTask], Meta(description="What is to be done, each in one of the groups.")] = []
    groups: Annotated[list[ReportedGroup], Meta(description="At least one, unless you ask or are done; new ids.")] = []


class PlanReport(Proposal, frozen=True):
    """The project manager's fields in planning."""

    questions: Annotated[list[str], Meta(description="With NEEDS_CLARIFICATION: what a person has to answer first.")] = []


class FinalReport(Proposal, frozen=True):
    """The project manager's fields in the final check; groups are for CONTINUE."""

    requirements: Annotated[list[Claim] | None, Meta(description="With DONE: every requirement, one by one.")] = None


FORMS: Forms = {
    Purpose.PLAN.value: PlanReport,
    Purpose.FINAL.value: FinalReport,
    Purpose.CONFIRM.value: ConfirmReport,
    Purpose.DEVELOP.value: DeveloperReport,
    Purpose.QA.value: QaReport,
    Purpose.REVIEW.value: ReviewReport,
    Purpose.CONSULT.value: ReviewReport,
}
"""By what an agent's turn is for."""


def read(report: Report, kind: type[T]) -> T | Failure:
    """Read the role's fields of a report, or the failure that says what is wrong with them."""
    try:
        return read_fields(report, kind)
    except msgspec.ValidationError as error:
        return invalid_report(f"the report has a wrong field: {error}")


def read_tests(report: Report) -> QaReport | Failure:
    """Read QA's fields; a failure may also be an object, which is kept as it was written."""
    failures = report.fields.get("failures")
    if isinstance(failures, list):
        told = [msgspec.json.encode(one).decode() if isinstance(one, dict) else one for one in failures]
        report = msgspec.structs.replace(report, fields={**report.fields, "failures": told})
    return read(report, QaReport)


def check_counts(counts: Mapping[str, Counts | None]) -> Failure | None:
    """Give the failure that says which count of tests cannot be."""
    for place, one in counts.items():
        if one is not None and (why := one.fault()):
            return invalid_report(f"the report has a wrong field: {why} - at `$.{place}`")
    return None
