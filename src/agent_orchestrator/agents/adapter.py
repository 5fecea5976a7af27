"""What an agent adapter is: how to start a program and how to judge its end. One adapter, one file.

An adapter is pure apart from the files of its own launch; it never starts, watches or stops anything, that is the
engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.inputs import Denial, Usage
from agent_orchestrator.core.report import Report


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of an agent. The prompt and feedback files are written before an adapter sees it."""

    effect: RunAgent
    run: str
    home: Path
    workdir: Path
    launch_dir: Path
    inherited_env: dict[str, str]
    """The explicit environment children start from; nothing else of ours reaches them."""
    refused: tuple[str, ...] = ()
    """What this agent was refused before in this run, and would be again."""
    budget_usd: float | None = None
    """What the agent may spend, where that is limited: for those that can be told."""
    form: type[msgspec.Struct] | None = None
    """What the role may add to its report, as the type that its system decodes."""

    @property
    def prompt(self) -> Path:
        """The prompt as this launch gets it: variables filled in, feedback appended, the report asked for."""
        return self.launch_dir / "prompt.md"

    @property
    def report(self) -> Path:
        """Where the agent writes its report."""
        return self.launch_dir / "report.json"

    @property
    def artifacts_dir(self) -> Path:
        """A folder for files that are not part of the tree."""
        return self.home / self.effect.artifacts_dir

    @property
    def feedback(self) -> Path | None:
        """What earlier attempts and iterations ran into, if there were any."""
        return self.launch_dir / "feedback.json" if self.effect.feedback or self.effect.told else None

    @property
    def answer(self) -> Path | None:
        """Where a person's answer about this step will be looked for."""
        return self.home / self.effect.answer_file if self.effect.answer_file else None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start: nothing in it is ever seen by a shell."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: Path | None
    """None gives an empty standard input."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a launch ended, as the engine saw it."""

    exit_code: int | None
    """None when it vanished; above 128 when a signal ended it."""
    cause: Failure | None
    """Why the engine ended it (time-out, output limit, stop), or that it was lost; None when it ended by itself."""
    started_us: int
    ended_us: int
    out: Path
    err: Path
    warnings: tuple[str, ...] = ()
    after_result: bool = False
    """It had written its result, did not exit and was stopped for that: the exit code is a signal's and says nothing."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What an ended launch means. Success is `failure` None."""

    failure: Failure | None = None
    report: Report | None = None
    usage: Usage | None = None
    cumulative: bool = False
    """The usage counts everything since the session began, not this launch alone."""
    session: str | None = None
    said: str | None = None
    """Its last words, where its output is a stream of events that is not for people; None where the output is."""
    warnings: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch at work has consumed so far, and its largest call to the model; None is unknown."""

    calls: int
    cost_usd: float | None = None
    tokens: int | None = None
    largest_usd: float | None = None
    largest_tokens: int | None = None


class Agent(Protocol):
    """An adapter. It is stateless; `options` of the choice carry what differs from run to run."""

    name: str
    appends_feedback: bool
    """Whether feedback may be written below the prompt; False where the prompt is a program."""

    def preflight(self, choice: AgentChoice) -> None:
        """Raises AgentMissing or a UsageError when this choice could never start; called before a run is created."""

    def ask_for_report(self, task: Task) -> str:
        """What stands about the report at the end of its prompt; nothing where the prompt is a program, or a person's own."""

    def plan(self, task: Task) -> Plan:
        """How to start this task."""

    def judge(self, task: Task, ending: Ending) -> Verdict:
        """Whether it succeeded: exit code, the engine's cause and the report must agree."""


@runtime_checkable
class Announcing(Protocol):
    """What an adapter has whose agent says that it is done before it exits, and may report in a place of its own."""

    def report_file(self, task: Task) -> Path:
        """Where this agent is asked to write its report."""

    def finished(self, task: Task, out: Path) -> Callable[[], bool]:
        """A cheap look at the growing output, asked whenever it grew: whether the terminal event is its last word."""


@runtime_checkable
class Metered(Protocol):
    """What an adapter has whose agent says what each call to its model took, while it works."""

    def meter(self, task: Task, out: Path, err: Path) -> Callable[[], Reading]:
        """A look at the growing output, asked whenever it grew: what was consumed up to now."""


@runtime_checkable
class Sleeping(Protocol):
    """What an adapter has whose agent sleeps out a refusal of its API, however long, and says so."""

    def asleep(self, task: Task, err: Path) -> Callable[[], Failure | None]:
        """A look at the growing error output, asked whenever it grew: why it is not to be waited for, if it sleeps."""


@runtime_checkable
class InProcessAgent(Protocol):
    """An agent that needs no process: it plays its part inside the engine and dies with it."""

    name: str

    def preflight(self, choice: AgentChoice) -> None:
        """As for Agent."""

    def delay_s(self, task: Task) -> float:
        """How long the part takes; infinite for one that hangs."""

    def act(self, task: Task) -> Verdict:
        """Plays the part after the delay: writes its files and reports."""
