"""The fields that roles add to their reports: decoded as these types, from which agents are told what to write."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.report import FAILED, common_words
from agent_orchestrator.systems.phases.spec import EXECUTOR, FIXER, PLANNER, SCANNER, SUPERVISOR, ReviewFinding

CONFLICTS = ("architecture", "dependency", "api", "security", "pattern")
ACTIONS = ("add", "remove", "describe", "move")


class Questions(msgspec.Struct, frozen=True):
    """The planner's fields."""

    questions: Annotated[list[str], Meta(description="With QUESTIONS: what a person has to answer before anything starts.")] = []


class Criteria(msgspec.Struct, frozen=True):
    """A task's fields."""

    criteria: Annotated[
        dict[str, bool], Meta(description="Whether each criterion that has no command is met, by its key in brackets.")
    ] = {}


class ReportedConflict(msgspec.Struct, frozen=True):
    """Something that contradicts the plan or the code."""

    type: Annotated[str, Meta(extra_json_schema={"enum": list(CONFLICTS)})]
    severity: Annotated[str, Meta(examples=["low"])] = ""
    details: str = ""
    recommendation: str = ""


class ReportedFix(msgspec.Struct, frozen=True):
    """Something that the supervisor mended."""

    file: str = ""
    issue: str = ""
    fix: str = ""


class ReportedChange(msgspec.Struct, frozen=True):
    """A change of the plan."""

    action: Annotated[str, Meta(extra_json_schema={"enum": list(ACTIONS)})]
    task: Annotated[str, Meta(examples=["2.3"])]
    name: str | None = None
    description: str | None = None
    criteria: list[str] | None = None
    needs: Annotated[list[str] | None, Meta(examples=[["2.1"]])] = None
    files: list[str] | None = None
    before: Annotated[str | None, Meta(examples=["2.2"])] = None


class Supervised(msgspec.Struct, frozen=True):
    """The supervisor's fields."""

    conflicts: Annotated[list[ReportedConflict], Meta(description="What contradicts the plan or what is there already.")] = []
    auto_fixes: Annotated[list[ReportedFix], Meta(description="With AUTO_FIX: what you mended.")] = []
    affected_tasks: Annotated[
        list[str], Meta(description="Ids of the tasks of the plan that this touches.", examples=[["2.1"]])
    ] = []
    recommended_changes: Annotated[
        list[ReportedChange] | str | None, Meta(description="With RE_PLAN: changes of the plan, or advice in words.")
    ] = None
    criteria: Annotated[dict[str, bool], Meta(description="Criteria of the task that are not met: false, by their keys.")] = {}


class Scanned(msgspec.Struct, frozen=True):
    """The scanner's fields."""

    findings: Annotated[
        list[ReviewFinding],
        Meta(description="With FOUND: what is wrong.", examples=[[{"priority": "P0 to P3", "file": "…", "issue": "…"}]]),
    ] = []


class AgentTurn(msgspec.Struct, frozen=True):
    """The role that plays a purpose, its own words, and the meaning of a bare COMPLETED, if it has one."""

    role: str
    words: tuple[str, ...]
    completed: str | None = None

    @property
    def aliases(self) -> dict[str, str]:
        """Words that are accepted besides."""
        return common_words(self.words, self.completed)


_SUPERVISES = AgentTurn(SUPERVISOR, ("PASS", "AUTO_FIX", "RE_PLAN"))
TURNS = {
    "plan": AgentTurn(PLANNER, ("READY", "QUESTIONS")),
    "execute": AgentTurn(EXECUTOR, ("SUCCESS", "PARTIAL", FAILED), completed="SUCCESS"),
    "pre_task": _SUPERVISES,
    "post_task": _SUPERVISES,
    "on_demand": _SUPERVISES,
    "scan": AgentTurn(SCANNER, ("CLEAN", "FIXED", "FOUND")),
    "repair": AgentTurn(FIXER, ("FIXED", "CLEAN", "FOUND"), completed="FIXED"),
}
FORMS: Forms = {
    "plan": Questions,
    "execute": Criteria,
    "pre_task": Supervised,
    "post_task": Supervised,
    "on_demand": Supervised,
    "scan": Scanned,
    "repair": Scanned,
}
"""Both by purpose."""
