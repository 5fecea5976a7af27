"""Units and launches as commands show them, whatever the system: a table of units, the programs that ran, what checks showed.

A state that can be shown has `steps` (unit → UnitView, or a struct of its own with these fields) and `specs` (unit → what
it needs). Nothing here is ever stored.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.units import US


class EndedProgram(Protocol):
    """What every event that ends a program says of it."""

    @property
    def effect(self) -> str:
        """Its id."""

    @property
    def started_us(self) -> int:
        """When it began."""

    @property
    def ended_us(self) -> int:
        """When it was over."""

    @property
    def exit_code(self) -> int | None:
        """Its exit code, where it has one."""

    @property
    def failure(self) -> Failure | None:
        """Why it failed, if it did."""


class EndedCheck(EndedProgram, Protocol):
    """What an event that ends a check says besides."""

    @property
    def tail(self) -> str:
        """The end of its output."""

    @property
    def tree(self) -> str | None:
        """The tree that it saw last."""

    @property
    def moved(self) -> bool:
        """Whether the tree changed while it ran."""


class UnitView(msgspec.Struct, frozen=True):
    """One unit: a task, a group, a bead, a loop."""

    status: str
    attempts: int
    iteration_count: int
    started_at: str | None
    ended_at: str | None
    last_error: str | None


class UnitNeeds(msgspec.Struct, frozen=True):
    """What a unit waits for."""

    needs: tuple[str, ...] = ()


class Launch(msgspec.Struct, omit_defaults=True, gc=False):
    """One program that ran for a unit."""

    effect: str
    started_us: int
    ended_us: int | None = None
    exit_code: int | None = None
    failure: str | None = None
    session: str | None = None

    def close(self, event: EndedProgram) -> None:
        """Note how it ended."""
        self.started_us, self.ended_us, self.exit_code = event.started_us, event.ended_us, event.exit_code
        self.failure = event.failure.kind.value if event.failure is not None else None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one check showed."""

    effect: str
    command: str
    exit_code: int | None
    failure: str | None
    started_us: int
    duration_s: float
    tail: str
    tree: str | None
    void: bool

    @classmethod
    def of(cls, event: EndedCheck, command: str) -> Evidence:
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
