"""The record of a unit's work that every system keeps: its launches, and what they left for the next one.

Only `evolve` changes it. A unit is a step, a task, a group, a bead or a loop; what is special about it stands in its system.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.launch_events import AgentLaunchFinished, CheckLaunchFinished, LaunchFinished
from agent_orchestrator.core.limits import EVIDENCE_KEPT, FEEDBACK_ENTRIES_MAX, LAUNCHES_KEPT, TIMEOUT_LEFT_MIN_S, WARNINGS_KEPT
from agent_orchestrator.core.units import US


class UnitView(msgspec.Struct, frozen=True):
    """A unit as commands show it, whatever the system: `state.steps` holds these, or structs with these fields."""

    status: str
    attempts: int
    iteration_count: int
    started_at: str | None
    ended_at: str | None
    last_error: str | None


class UnitNeeds(msgspec.Struct, frozen=True):
    """The units that a unit waits for: `state.specs` holds these, or structs with this field."""

    needs: tuple[str, ...] = ()


class Launch(msgspec.Struct, omit_defaults=True, gc=False):
    """One program that ran for a unit."""

    effect: EffectId
    started_us: int
    ended_us: int | None = None
    exit_code: int | None = None
    failure: str | None = None
    session: str | None = None

    def close(self, event: LaunchFinished) -> None:
        """Note how it ended."""
        self.started_us, self.ended_us, self.exit_code = event.started_us, event.ended_us, event.exit_code
        self.failure = event.failure.kind.value if event.failure is not None else None
        if isinstance(event, AgentLaunchFinished):
            self.session = event.session


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The output of one check, and what it was about."""

    effect: EffectId
    command: str
    exit_code: int | None
    failure: str | None
    started_us: int
    duration_s: float
    tail: str
    tree: str | None
    void: bool

    @classmethod
    def of(cls, event: CheckLaunchFinished, command: str) -> Evidence:
        """Keep what the event says that the command showed."""
        return cls(
            effect=event.effect,
            command=command,
            exit_code=event.exit_code,
            failure=event.failure.message if event.failure is not None else None,
            started_us=event.started_us,
            duration_s=(event.ended_us - event.started_us) / US,
            tail=event.tail,
            tree=event.tree,
            void=event.moved,
        )


class UnitRecord(msgspec.Struct, kw_only=True, array_like=True):
    """The launches of one unit and what is kept of them. Tuples, because most stay empty and 10,000 empty lists cost.

    Only snapshots encode it, and there the names of its fields would be most of it.
    """

    launches: int = 0
    """Effects made so far: the launch number, never reused."""
    agent_launch: EffectId = EffectId("")
    """The newest launch of an agent, whose work a person judges."""
    spent_us: int = 0
    """Running time of this attempt's earlier launches."""
    session: str | None = None
    """The agent's session that the next launch goes on with."""
    reruns: int = 0
    """Times that the newest check was run again, because its evidence was worth nothing."""
    feedback: tuple[dict[str, Any], ...] = ()
    history: Sequence[Launch] = ()
    """The newest launches; to keep one more costs the same however many there were."""
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()

    def open_launch(self, effect: EffectId, at_us: int) -> None:
        """Count and keep a program that starts; what is no program is only counted."""
        self.launches += 1
        launch = Launch(effect, at_us)
        if not self.history:
            self.history = (launch,)  # Most units have no other, and a deque takes twenty times as much.
            return
        if not isinstance(self.history, deque):
            self.history = deque(self.history, maxlen=LAUNCHES_KEPT)
        self.history.append(launch)

    def close_launch(self, event: LaunchFinished) -> None:
        """Note how the newest launch ended, where it is this one."""
        if self.history and self.history[-1].effect == event.effect:
            self.history[-1].close(event)

    def abandon_launch(self, at_us: int, failure: str | None) -> None:
        """Note that the newest launch, where it is still open, is over without an outcome."""
        if self.history and self.history[-1].ended_us is None:
            self.history[-1].ended_us, self.history[-1].failure = at_us, failure

    def end_agent(self, event: AgentLaunchFinished) -> None:
        """Note how the agent ended; an attempt that goes on keeps the session, unless it is lost, and has less time.

        Any other has all its time again.
        """
        self.close_launch(event)
        if event.warnings:
            self.warn(*event.warnings)
        if event.failure is None or not event.went_on:
            self.session, self.spent_us = None, 0
        else:
            lost = event.failure.kind is FailureKind.SESSION_LOST
            self.session = None if lost else event.session
            self.spent_us += event.ended_us - event.started_us

    def end_check(self, event: CheckLaunchFinished, command: str) -> None:
        """Note how the check ended, and keep its evidence."""
        self.close_launch(event)
        self.evidence = (*self.evidence, Evidence.of(event, command))[-EVIDENCE_KEPT:]

    def count_rerun(self, *, again: bool) -> None:
        """Count a check that is run again; any other starts from 0."""
        self.reruns = self.reruns + 1 if again else 0

    def tell(self, entry: dict[str, Any]) -> None:
        """Keep something that the next launch is told."""
        self.feedback = (*self.feedback, entry)[-FEEDBACK_ENTRIES_MAX:]

    def warn(self, *texts: str) -> None:
        """Keep something that a person should know, once."""
        if texts:
            self.warnings = tuple(dict.fromkeys((*self.warnings, *texts)))[-WARNINGS_KEPT:]

    def details(self) -> dict[str, Any]:
        """Give what commands show of the launches."""
        return {
            "launches": [msgspec.to_builtins(launch) for launch in self.history],
            "evidence": [msgspec.to_builtins(evidence) for evidence in self.evidence],
            "feedback": list(self.feedback),
            "warnings": list(self.warnings),
        }

    def time_left_s(self, timeout_s: float | None) -> float | None:
        """Give what is left of an attempt's time: at least a little, where it was interrupted."""
        return time_left_s(timeout_s, self.spent_us)


def time_left_s(timeout_s: float | None, spent_us: int) -> float | None:
    """Give what is left of an attempt's time after so much of it: at least a little."""
    return max(TIMEOUT_LEFT_MIN_S, timeout_s - spent_us / US) if timeout_s is not None and spent_us else timeout_s
