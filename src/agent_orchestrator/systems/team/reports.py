"""What the roles add to their reports: the types that are decoded, and from which agents are told what to write."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent_orchestrator.core.forms import Forms
from agent_orchestrator.systems.team.words import Purpose


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many tests there were; `failed` follows from the others when it is left out."""

    total: int
    passed: int
    failed: int | None = None

    def plain(self) -> dict[str, int]:
        """As group_status.json has it."""
        return {"total": self.total, "passed": self.passed, "failed": self._failed}

    def fault(self) -> str:
        """Why these numbers cannot be; nothing when they can."""
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
        """In a line, for the developer."""
        head = " ".join(part for part in (f"[{self.priority}]" if self.priority else "", self.title or "") if part)
        where = f" ({self.location})" if self.location else ""
        said = ": ".join(part for part in (f"{head}{where}".strip(), self.description or "") if part)
        return f"{said}; suggestion: {self.fix_suggestion}" if self.fix_suggestion else said


class Quality(msgspec.Struct, frozen=True, omit_defaults=True):
    """Numbers of a review."""

    code_quality_score: Annotated[float | None, Meta(examples=[8.5])] = None
    security_issues_count: int | None = None


class Claim(msgspec.Struct, frozen=True):
    """What somebody says of one requirement."""

    text: Annotated[str, Meta(description="The requirement, in the words in which it was given.")]
    met: bool
    evidence: Annotated[str, Meta(description="What shows it.")] = ""


class Developed(msgspec.Struct, frozen=True):
    """A developer's fields."""

    unit_tests: Annotated[
        Counts | None, Meta(description="How many you ran.", examples=[{"total": 12, "passed": 12, "failed": 0}])
    ] = None
    notes: Annotated[str, Meta(description="What QA and the tech lead should know.")] = ""
    blocker: Annotated[str, Meta(description="With BLOCKED: what you need the tech lead for.")] = ""


class Results(msgspec.Struct, frozen=True):
    """Results by kind of test."""

    integration_tests: Counts | None = None
    contract_tests: Counts | None = None
    e2e_tests: Counts | None = None


class Tested(msgspec.Struct, frozen=True):
    """QA's fields."""

    test_results: Annotated[Results, Meta(description="How many tests of each kind you ran.")] = Results()
    failures: Annotated[list[str], Meta(description="With FAIL: each a sentence that says what is wrong and how to see it.")] = []


class Judged(msgspec.Struct, frozen=True):
    """The tech lead's fields."""

    feedback: Annotated[str, Meta(description="What the developer should know, or how to go on.")] = ""
    issues: Annotated[list[Issue], Meta(description="What is to be changed.")] = []
    actionable_items: Annotated[list[str], Meta(description="What is to be done, one thing each.")] = []
    quality: Annotated[Quality, Meta(description="What you make of the code: a score from 0 to 10.")] = Quality()


class Confirmed(msgspec.Struct, frozen=True):
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
    """What a project manager wants done."""

    mode: Annotated[
        Literal["simple", "parallel"] | None,
        Meta(description="Whether one developer does it all or several work side by side.", examples=["parallel"]),
    ] = None
    mode_reasoning: Annotated[str, Meta(description="Why that mode.")] = ""
    tasks: Annotated[list[ReportedTask], Meta(description="What is to be done, each in one of the groups.")] = []
    groups: Annotated[list[ReportedGroup], Meta(description="At least one, unless you ask or are done; new ids.")] = []


class Planned(Proposal, frozen=True):
    """The project manager's fields in planning."""

    questions: Annotated[list[str], Meta(description="With NEEDS_CLARIFICATION: what a person has to answer first.")] = []


class Checked(Proposal, frozen=True):
    """The project manager's fields in the final check; groups are for CONTINUE."""

    requirements: Annotated[list[Claim] | None, Meta(description="With DONE: every requirement, one by one.")] = None


FORMS: Forms = {
    Purpose.PLAN.value: Planned,
    Purpose.FINAL.value: Checked,
    Purpose.CONFIRM.value: Confirmed,
    Purpose.DEVELOP.value: Developed,
    Purpose.QA.value: Tested,
    Purpose.REVIEW.value: Judged,
    Purpose.CONSULT.value: Judged,
}
"""By what an agent's turn is for."""
