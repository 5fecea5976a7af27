"""Facts about programs that ended, the same in every system: a system's own event adds the unit and what else it knows.

`agent_fields`, `check_fields` and `launch_fields` give the part of such an event that comes from the outcome.
"""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded
from agent_orchestrator.core.judging import Worth, has_gone_on, known_worth, tree_moved


class LaunchFinished(Event, frozen=True, kw_only=True):
    """A program is over."""

    effect: EffectId
    started_us: int
    ended_us: int
    exit_code: int | None = None
    failure: Failure | None = None


class AgentLaunchFinished(LaunchFinished, frozen=True, kw_only=True):
    """An agent is over, and this is what it left; what it means follows as an event of its own."""

    summary: str = ""
    tail: str = ""
    """The end of its output, where it failed."""
    warnings: tuple[str, ...] = ()
    session: str | None = None
    goes_on: bool | None = None
    """True when the same attempt goes on with a new launch; of an agent that did not fail it is not asked."""

    @property
    def went_on(self) -> bool:
        """True when the attempt went on, in old journals too."""
        return has_gone_on(self.goes_on, self.failure)


class CheckLaunchFinished(LaunchFinished, frozen=True, kw_only=True):
    """The evidence of one command; what it means follows as an event of its own."""

    tail: str = ""
    tree: str | None = None
    """The tree that it saw last."""
    moved: bool = False
    """The working tree changed while it ran."""


class JudgedCheckFinished(CheckLaunchFinished, frozen=True, kw_only=True):
    """The evidence of one command, with what it is worth."""

    again: bool = False
    """The same command is run once more: its evidence is worth nothing, or it gets a second chance."""
    worth: Worth | None = None
    """The worth that it was judged to have as evidence."""

    @property
    def passed(self) -> bool:
        """True when it is evidence of success."""
        return self.judged is Worth.PASSED

    @property
    def judged(self) -> Worth:
        """The worth of the evidence, in old journals too."""
        return known_worth(self.worth, self.failure, self.exit_code, moved=self.moved, again=self.again)


def launch_fields(outcome: AgentEnded | CheckEnded) -> dict[str, Any]:
    """Give what every outcome says of its program."""
    return {
        "effect": outcome.effect,
        "started_us": outcome.started_us,
        "ended_us": outcome.ended_us,
        "exit_code": outcome.exit_code,
    }


def agent_fields(outcome: AgentEnded, failure: Failure | None, *warnings: str) -> dict[str, Any]:
    """Give what the outcome says of an agent that failed so, or did not; the system says what it keeps of session and output."""
    report = outcome.report
    return {
        **launch_fields(outcome),
        "failure": failure,
        "goes_on": failure.goes_on if failure is not None else None,
        "warnings": (*outcome.warnings, *(report.warnings if report is not None else ()), *warnings),
    }


def check_fields(outcome: CheckEnded, *, shared: bool = False) -> dict[str, Any]:
    """Give what the outcome says of a check; in a `shared` tree others may change files meanwhile."""
    return {
        **launch_fields(outcome),
        "failure": outcome.failure,
        "tail": outcome.tail,
        "moved": tree_moved(outcome) and not shared,
    }
