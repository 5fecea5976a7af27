"""The specification of a team. Stored with the run as JSON, so it holds plain values only.

Reading flags and looking at the repository is `runs/team/options.py`'s; here is only what was decided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import iso

DEVELOPERS_MAX = 4
ROUNDS_MAX = 5
ATTEMPTS_MAX = 3
ESCALATE = "escalate:"
ESCALATES_AFTER = 2
"""Failed rounds of a group after which the stronger agent takes over."""

_ITEM = re.compile(r"\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)\Z")
_CHECK = re.compile(r"\s*\(check:\s*`?(.+?)`?\s*\)\s*\Z", re.I)


class QaMode(StrEnum):
    """The extent of QA."""

    FULL = "full"
    MINIMAL = "minimal"
    """No QA: what is ready for QA is ready for review."""
    NONE = "none"
    """The same, and developers are not asked for unit tests either."""


class RequirementSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One requirement, in the words of whoever gave it; with a command that shows that it is met, if there is one."""

    text: str
    check: str | None = None


class TeamSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requirements, who works, and the limits."""

    requirements: str
    """Verbatim."""
    wanted: tuple[RequirementSpec, ...]
    """The same, one by one."""
    agents: dict[str, AgentChoice]
    """By role; the empty name is everybody else."""
    into: str
    """The branch that groups merge into."""
    escalate: dict[str, AgentChoice] = {}
    """By role: who takes over after two failed rounds."""
    check: str | None = None
    """The command that must pass on the merged tree before a merge lands."""
    check_timeout_s: float | None = None
    max_parallel: int = DEVELOPERS_MAX
    max_qa_rounds: int = ROUNDS_MAX
    max_review_rounds: int = ROUNDS_MAX
    max_attempts: int = ATTEMPTS_MAX
    testing: QaMode = QaMode.FULL
    taken_branches: tuple[str, ...] = ()
    """Branches that existed at the start: a group never takes one over."""
    env: dict[str, str] = {}
    agent_timeout_s: float | None = None
    idle_timeout_s: float | None = None

    @property
    def assigned(self) -> dict[str, AgentChoice]:
        """The agents, by role; the one that takes over from a role is called `escalate:ROLE`."""
        return {**self.agents, **{f"{ESCALATE}{role}": choice for role, choice in self.escalate.items()}}

    def with_assigned(self, agents: Mapping[str, AgentChoice]) -> TeamSpec:
        """Give the specification with these agents instead, where they are given."""
        over = {place.removeprefix(ESCALATE): one for place, one in agents.items() if place.startswith(ESCALATE)}
        own = {place: one for place, one in agents.items() if not place.startswith(ESCALATE)}
        return msgspec.structs.replace(self, agents={**self.agents, **own}, escalate={**self.escalate, **over})

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """All agents that may work."""
        return (*self.agents.values(), *self.escalate.values())


def split_requirements(text: str) -> tuple[RequirementSpec, ...]:
    """Split a list into requirements; a text without a list is one. `(check: CMD)` may end each."""
    items: list[str] = []
    for line in text.splitlines():
        found = _ITEM.match(line)
        if found is not None:
            items.append(found[1])
        elif items and line.startswith((" ", "\t")) and line.strip():
            items[-1] += f" {line.strip()}"
    return tuple(read_wanted(item) for item in items if item.strip()) or (read_wanted(text),)


def read_wanted(text: str, check: str | None = None) -> RequirementSpec:
    """Read one requirement and its check."""
    found = _CHECK.search(text)
    if found is None:
        return RequirementSpec(text=text.strip(), check=check)
    return RequirementSpec(text=text[: found.start()].strip(), check=check or found[1])


def session_id(at_us: int) -> str:
    """Make v4_20250106_100000: when the team began, in UTC."""
    return f"v4_{moment(at_us)}"


def moment(at_us: int) -> str:
    """Give 20250106_100000, as ids have it."""
    return iso(at_us)[:19].replace("-", "").replace(":", "").replace("T", "_")
