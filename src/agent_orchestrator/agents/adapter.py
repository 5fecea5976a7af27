"""The port of agent adapters: one starts a kind of program and judges its end. One adapter, one file.

An adapter is pure apart from the files of its own launch; it never starts, watches or stops anything, that is the
engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from agent_orchestrator.agents.events import StreamEvent
from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.inputs import Denial, Usage
from agent_orchestrator.core.report import Report

COPIES = "session copies"
"""The ability of an agent to go on with a copy of a session."""


class RunServer(msgspec.Struct, frozen=True, kw_only=True):
    """The MCP server of the run, as one launch may use it: to note progress, ask people and read their words."""

    url: str
    key: str
    """Of this launch alone: it says who speaks."""


class AgentTask(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One launch of an agent. The prompt and feedback files are written before an adapter sees it.

    The paths that every launch asks for several times are made once: a Path takes as long to make as a file.
    """

    effect: RunAgent
    run: str
    home: Path
    workdir: Path
    launch_dir: Path
    inherited_env: dict[str, str]
    """The explicit environment children start from; nothing else of ours reaches them."""
    refused: tuple[str, ...] = ()
    """Tools that this agent was refused before in this run, and would be again."""
    budget_usd: float | None = None
    """The most that the agent may spend, for those that can be told; None without a limit."""
    sandboxed: bool = False
    """True behind a wall of ours: the client needs none of its own, and inside another it might not work."""
    copies_session: bool = False
    """True where the session to go on with is another run's: the agent goes on with a copy, and leaves that one as it is."""
    server: RunServer | None = None
    """The run's MCP server, for a client that can use one; None where the run has none."""
    form: type[msgspec.Struct] | None = None
    """The fields that the role may add to its report, as the type that its system decodes."""

    @cached_property
    def prompt(self) -> Path:
        """The prompt as this launch gets it: variables filled in, feedback appended, the report asked for."""
        return self.launch_dir / "prompt.md"

    @cached_property
    def report(self) -> Path:
        """The file that the agent writes its report to."""
        return self.launch_dir / "report.json"

    @cached_property
    def artifacts_dir(self) -> Path:
        """A folder for files that are not part of the tree."""
        return self.home / self.effect.artifacts_dir

    @property
    def feedback(self) -> Path | None:
        """The file with the failures of earlier attempts and iterations, if there were any."""
        return self.launch_dir / "feedback.json" if self.effect.feedback or self.effect.told or self.effect.steering else None

    @property
    def answer(self) -> Path | None:
        """The file in which a person's answer about this step is expected."""
        return self.home / self.effect.answer_file if self.effect.answer_file else None


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """The program to start, with its environment and input; no shell ever sees it."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: Path | None
    """None gives an empty standard input."""
    keeps: tuple[Path, ...] = ()
    """Files and folders in which the client keeps its login and its sessions: a wall leaves them open."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a launch, as the engine saw it."""

    exit_code: int | None
    """None when it vanished; above 128 when a signal ended it."""
    cause: Failure | None
    """The engine's reason to end it (time-out, output limit, stop), or that it was lost; None when it ended by itself."""
    started_us: int
    ended_us: int
    out: Path
    err: Path
    warnings: tuple[str, ...] = ()
    after_result: bool = False
    """It had written its result, did not exit and was stopped for that: the exit code is a signal's and says nothing."""
    unstarted: str = ""
    """The shortage of the machine that kept the program from running, where that is proven: the launch may be started."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter's judgement of an ended launch. Success is `failure` None."""

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
    """Consumption of a running launch so far, and its largest call to the model; None is unknown."""

    calls: int
    cost_usd: float | None = None
    tokens: int | None = None
    largest_usd: float | None = None
    largest_tokens: int | None = None


class Agent(Protocol):
    """An adapter. It is stateless; `options` of the choice carry what differs from run to run."""

    name: str
    appends_feedback: bool
    """False where the prompt is a program: feedback cannot be written below it."""

    def preflight(self, choice: AgentChoice) -> None:
        """Raise AgentMissing or a UsageError when this choice could never start; called before a run is created."""

    def ask_for_report(self, task: AgentTask) -> str:
        """Return the prompt's closing section about the report; empty where the prompt is a program, or a person's own."""

    def plan(self, task: AgentTask) -> Invocation:
        """Return the program that does this task."""

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        """Judge the end: for a success exit code, the engine's cause and the report must agree."""


@runtime_checkable
class Announcing(Protocol):
    """An adapter whose agent says that it is done before it exits, and may report in a place of its own."""

    def report_file(self, task: AgentTask) -> Path:
        """Return the file that this agent is asked to write its report to."""

    def watch_result(self, task: AgentTask, out: Path) -> Callable[[], bool]:
        """Return a cheap test of the growing output, called whenever it grew: is the terminal event its last word?"""


@runtime_checkable
class Metered(Protocol):
    """An adapter whose agent says what each call to its model took, while it works."""

    def meter(self, task: AgentTask, out: Path, err: Path) -> Callable[[], Reading]:
        """Return a meter of the growing output, called whenever it grew."""


@runtime_checkable
class Sleeping(Protocol):
    """An adapter whose agent sleeps out a refusal of its API, however long, and says so."""

    def watch_sleep(self, task: AgentTask, err: Path) -> Callable[[], Failure | None]:
        """Return a watch on the error output, called whenever it grew: the reason not to wait, if the agent sleeps too long."""


@runtime_checkable
class Interactive(Protocol):
    """An adapter whose agent keeps sessions that a person can take over in the client's own screen."""

    def read(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        """Turn one line of its stream into events: one of them names the session."""

    def plan_takeover(self, task: AgentTask) -> Invocation:
        """Return the client as a person uses it, on the session of the task."""


@runtime_checkable
class InProcessAgent(Protocol):
    """An agent that needs no process: it plays its part inside the engine and dies with it."""

    name: str

    def preflight(self, choice: AgentChoice) -> None:
        """Raise as `Agent.preflight` does."""

    def delay_s(self, task: AgentTask) -> float:
        """Return the time that the part takes; infinite for one that hangs."""

    def act(self, task: AgentTask) -> Verdict:
        """Play the part after the delay: write its files and report."""

    def touches(self, task: AgentTask) -> bool:
        """Say whether the part may change the working tree: one that does not costs no look at it."""
