"""The specification of a loop. Stored with the run as JSON, so it holds plain values only.

Reading flags and looking at the disk is `runs/loop/options.py`'s; here is only what was decided.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeGuard

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import ID_LENGTH_MAX, RunId

LOOP_ID = re.compile(r"ralph-[a-z0-9-]+-[a-f0-9]{8}\Z")
SLUG_CHARS_MAX = 30
MAX_ITERATIONS = 200
MEMORY = 20
MEMORY_MAX = 50
"""The most lessons that leave room for the task in a prompt."""
CHECKPOINTS_KEPT = 5
"""The newest checkpoint files that stay; tagged ones stay besides."""


class ExecutionMode(StrEnum):
    """The seed's words; what each does stands in docs/loops.md."""

    STRICT = "strict"
    SEEDED = "seeded"
    LOGGED = "logged"
    DEFAULT = "default"


class Tried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One iteration in a line, as the next ones are told."""

    iteration: int
    passed: bool | None
    """None for an iteration of an imported loop of which its file does not tell."""
    summary: str = ""
    error: str = ""
    files_changed: int | None = None


class Carried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a loop that its successor takes over."""

    loop: str
    iteration: int = 0
    tried: tuple[Tried, ...] = ()
    learnings: tuple[str, ...] = ()
    check_output: str = ""
    tests_most: int | None = None
    steering: tuple[str, ...] = ()
    """The words of people that no agent was told yet."""


class LoopSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The task, how its end is recognised, and the options."""

    task: str
    completion: str
    """The criterion as it was given."""
    command: str | None = None
    """The criterion as a command for `sh -c`; None when it is prose."""
    agent: AgentChoice | None = None
    """None for an imported loop until it is resumed with one."""
    confirm_with: AgentChoice | None = None
    """The agent that confirms a prose criterion; None asks a person."""
    test_command: str | None = None
    max_iterations: int = MAX_ITERATIONS
    timeout_minutes: int | None = None
    interactive: bool = False
    auto_test: bool = True
    checkpoint_interval: int = 1
    execution_mode: ExecutionMode = ExecutionMode.DEFAULT
    seed: int | None = None
    continue_session: bool = False
    budget_usd: float | None = None
    """Of loops that 0.1.0 made; newer ones have limits like any run."""
    allow_fewer_tests: bool = False
    protected: tuple[str, ...] = ()
    """Patterns of files that a completed loop must not have changed."""
    commit: bool = False
    git: bool = True
    """False where the working tree is in no repository: what needs diffs is off then."""
    owner: str = ""
    env: dict[str, str] = {}
    iteration_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    carried: Carried | None = None
    memory: int = MEMORY
    """The most lessons of earlier loops that the agents are told."""
    remembered: tuple[str, ...] = ()
    """The lessons of earlier loops of the repository, as they were known when the loop began, newest first."""

    @property
    def handed_seed(self) -> int | None:
        """The agent's LOOP_SEED; the modes with a seed have one, whoever chose them and when."""
        return self.seed or 0 if self.execution_mode in (ExecutionMode.SEEDED, ExecutionMode.STRICT) else None

    @property
    def assigned(self) -> dict[str, AgentChoice]:
        """The agents: `agent`, and `confirm_with` where somebody confirms."""
        known = {"agent": self.agent, "confirm_with": self.confirm_with}
        return {place: choice for place, choice in known.items() if choice is not None}

    def with_assigned(self, agents: Mapping[str, AgentChoice]) -> LoopSpec:
        """The specification with these instead, where they are given."""
        return msgspec.structs.replace(self, **agents)

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """Everybody who may work."""
        return tuple(choice for choice in (self.agent, self.confirm_with) if choice is not None)


def slug_of(task: str) -> str:
    """The first words of a task as part of an id."""
    words = re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")
    if len(words) > SLUG_CHARS_MAX:
        cut = words[: SLUG_CHARS_MAX + 1]
        words = cut.rpartition("-")[0] or cut[:SLUG_CHARS_MAX]
    return words[:SLUG_CHARS_MAX].strip("-") or "task"


def is_loop_id(given: object) -> TypeGuard[str]:
    """Tell whether it is an id that a loop may have; what cannot be a file's name is none."""
    return isinstance(given, str) and len(given) <= ID_LENGTH_MAX and LOOP_ID.match(given) is not None


def loop_id(task: str, unique: str) -> RunId:
    """The id of a loop: `ralph-`, what it is about, eight hex digits."""
    return RunId(f"ralph-{slug_of(task)}-{unique}")


def named_loop(given: str) -> RunId:
    """Return the id of a loop that people gave a name of their own: the same for the same name."""
    unique = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return loop_id(given.lower().removeprefix("ralph-"), unique)
