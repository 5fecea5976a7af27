"""The specification of a phased run: the task document as it was read, and the options. Stored as JSON with the run.

Reading the document is `parse`'s, reading flags and looking at the disk `runs/phases/options.py`'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.systems.phases.commands import FoundCommand

MAX_ITERATIONS = 30
OUTER_ITERATIONS = 10
ATTEMPTS = 3
"""The number of tries of a launch within one iteration."""
UNLIMITED = "unlimited"
SLUG_CHARS_MAX = 40
CRITERION_CHARS_MAX = 60

EXECUTOR = "task-executor"
SUPERVISOR = "supervisor"
SCANNER = "code-improvement-scanner"
FIXER = "outer-ralph"
PLANNER = "planner"
ROLES = (EXECUTOR, SUPERVISOR, SCANNER, FIXER, PLANNER)

TASK_ID = re.compile(r"(\d{1,4})\.(\d{1,4})\Z")


class Criterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to tell that something is done; with a command, the engine runs it."""

    key: str
    text: str
    command: str | None = None


class PlanTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of the plan."""

    id: str
    name: str
    description: str = ""
    criteria: tuple[Criterion, ...] = ()
    needs: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    complexity: str = ""
    effort: str = ""
    files: tuple[str, ...] = ()
    """Paths, relative to the repository, that it declares to change; held as locks while it is at work."""

    @property
    def phase(self) -> int:
        """The index of its phase: the id decides."""
        return _phase_of(self.id)


@cache
def _phase_of(task: str) -> int:
    return int(task.partition(".")[0]) - 1


class PlanPhase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase, `number` as the document counts."""

    number: int
    name: str
    text: str = ""
    """The text of the document between its heading and its tasks."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Safety bounds: the texts are written as they were given."""

    max_iterations: int = MAX_ITERATIONS
    max_cost: str = UNLIMITED
    max_cost_usd: float | None = None
    max_time: str = UNLIMITED
    max_time_s: float | None = None


class Supervision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When the supervisor looks, and whether what it mends is kept."""

    enabled: bool = True
    before: bool = True
    after: bool = True
    auto_fix: bool = True
    focus: tuple[str, ...] = ()
    """Things that it is asked to look for besides."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One learning, as `learnings.jsonl` has it."""

    timestamp: str
    task: str
    iteration: int
    type: str
    lesson: str
    pattern: str
    context: str


class PlanConflict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the supervisor found, judged by its type."""

    type: str
    severity: str
    action: str
    details: str = ""
    recommendation: str = ""
    differs: str = ""
    """The words of the report, where it said something else."""


class PlanChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of the plan: `add`, `remove`, `describe` or `move`."""

    action: str
    task: str
    made: PlanTask | None = None
    """The task as it is from now on, where it is added or described anew."""
    before: str | None = None
    """The task of the same phase that it is put before; None for the end."""


class ReviewFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the review found."""

    priority: str
    issue: str
    file: str = ""


class PhasesPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task document as it was read."""

    name: str
    goal: str
    context: str = ""
    criteria: tuple[Criterion, ...] = ()
    phases: tuple[PlanPhase, ...] = ()
    tasks: tuple[PlanTask, ...] = ()
    bounds: Bounds = Bounds()
    supervision: Supervision = Supervision()
    outer_ralph: bool = True
    outer_max: int = OUTER_ITERATIONS
    outer_focus: tuple[str, ...] = ()
    """Things that the review is asked to look at most of all."""


class Publication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The consent to publish, and the place: the fields of the specification that a resume may change."""

    publish: bool
    remote: str = ""
    address: str = ""
    repository: str = ""


class PhasesSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The plan, who works, and the options."""

    document: str
    """The task document's absolute path, for the state file only."""
    plan: PhasesPlan
    agents: dict[str, AgentChoice]
    """By role; "" is everybody else."""
    branch: str
    target: str = ""
    """The branch that a pull request is for."""
    remote: str = ""
    """The name of the remote that the branch is pushed to."""
    address: str = ""
    """The address of the remote, without credentials, that a person was shown: nothing is sent while it has another."""
    repository: str = ""
    """The repository of issues and the pull request, as HOST/OWNER/NAME; with "" `gh` finds it by the remotes."""
    publish: bool | None = None
    """True where work may leave the machine; None, as in runs of 0.1.0, means that nobody said so, and no."""
    yes: bool = False
    """Nobody approves the plan, or a change of it."""
    plan_with: bool = False
    max_parallel: int = 1
    max_attempts: int = ATTEMPTS
    env: dict[str, str] = {}
    variables: dict[str, str] = {}
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    earlier: tuple[Lesson, ...] = ()
    """The lessons of earlier runs."""

    @property
    def assigned(self) -> dict[str, AgentChoice]:
        """The agents, by role."""
        return self.agents

    def with_assigned(self, agents: Mapping[str, AgentChoice]) -> PhasesSpec:
        """Give the specification with these agents instead, where they are given."""
        return msgspec.structs.replace(self, agents={**self.agents, **agents})

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """All agents that may work."""
        return tuple(self.agents.values())

    @property
    def publishes(self) -> bool:
        """True where milestones and the work are published; else they are files."""
        return bool(self.remote) and self.publish is True

    def choice_for(self, role: str) -> AgentChoice:
        """Give the agent that performs a role."""
        return self.agents.get(role) or self.agents[""]


def branch_of(plan: PhasesPlan) -> str:
    """Give the branch that a run of this plan works on, unless it is taken."""
    return f"phases/{slug_of(plan.name) or 'task'}"


def slug_of(text: str, joint: str = "-", most: int = SLUG_CHARS_MAX) -> str:
    """Make a name of a text's words, cut between words where that is possible."""
    words = re.sub(r"[^a-z0-9]+", joint, text.lower()).strip(joint)
    if len(words) > most:
        cut = words[: most + 1]
        words = cut.rpartition(joint)[0] or cut[:most]
    return words[:most].strip(joint)


def make_criteria(texts: Sequence[tuple[str, FoundCommand]]) -> tuple[Criterion, ...]:
    """Make criteria with keys of their words, each key once; a criterion is its text and, perhaps, a command."""
    made: dict[str, Criterion] = {}
    for text, found in texts:
        plain, command = found.plain, found.command
        stem = slug_of(plain, "_", CRITERION_CHARS_MAX) or slug_of(command or text, "_", CRITERION_CHARS_MAX) or "criterion"
        key, number = stem, 1
        while key in made:
            number += 1
            key = f"{stem}_{number}"
        made[key] = Criterion(key=key, text=text, command=command)
    return tuple(made.values())


def overlaps(one: str, other: str) -> bool:
    """Tell whether two declared paths may mean the same file: equal, or one a folder of the other."""
    first, second = (path.rstrip("/") + "/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)
