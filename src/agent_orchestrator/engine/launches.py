"""The port through which the engine starts, finds again, watches and stops external programs.

`process/` is the real one, `testing` has a simulated one; the rules both keep are in docs/durability.md. Every external
program whose repeat could do harm is a launch: agents and checks. Questions to git and notifications are plain children.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES, RESULT_GRACE_S, STOP_GRACE_S


class Standing(StrEnum):
    """The state of a launch, by what its directory holds."""

    NEW = "new"
    """Never started, and it may be started now."""
    ALIVE = "alive"
    """Its lock is held: adopt it."""
    OVER = "over"
    """It ended, was lost, or may have run before a reboot: collect it, never start it."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The order to start one launch."""

    effect: EffectId
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    stdin: Path | None
    terminal: str | None = None
    """The tmux session to run in, where a person can look on; None for none."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """The limits under which a launch runs; running time is counted, suspend is not."""

    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    budget_s: float | None = None
    """The rest of the time that its step or the day may take."""
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    grace_s: float = STOP_GRACE_S
    finished: Callable[[], bool] | None = None
    """Says whether the program has written its result; asked whenever its output grew, because it may work on after all."""
    grew: Callable[[], Failure | None] | None = None
    """Asked when its output grew; what it answers stops the launch."""
    look_s: Callable[[], float] | None = None
    """Says how long it may write without being looked at, where that matters; it may change while it works."""
    result_grace_s: float = RESULT_GRACE_S
    """Time that it may stay silent after its result before it is stopped, which is then no failure."""


class CannotStart(Exception):
    """The program can never be started like this; the message says why."""


class Launches(Protocol):
    """All launches of one store."""

    def directory(self, effect: EffectId) -> Path:
        """The launch's own directory; nothing is created."""

    def standing(self, effect: EffectId, *, same_boot: bool) -> Standing:
        """Return what became of a launch that an earlier engine may have started."""

    def claim(self, effect: EffectId) -> Path | None:
        """Makes sure that nothing lies where a new launch is to be made; returns where it was moved, if anything did."""

    def start(self, order: Order) -> None:
        """Locks, marks and spawns. Raises Shortage or CannotStart, then nothing runs and the launch is over or new."""

    def living(self, run: RunId) -> list[EffectId]:
        """Launches of a run that are alive, in order: after a crash some may be alive that nobody wants any more."""

    def unsettled(self, run: RunId) -> list[EffectId]:
        """Those that are alive, and those that were stopped and whose end is not settled yet, in order."""

    def alive_between(self, since_ns: int, until_ns: int, run: RunId | None = None) -> EffectId | None:
        """A launch of the run, or of any, that lived or may have lived between two times of files; None if none did."""

    def settle(self, effect: EffectId) -> None:
        """The end of a launch is durable, whatever it was."""

    def void(self, effect: EffectId) -> None:
        """Makes sure that a launch which never started never will, whoever still means to start it."""

    def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
        """Calls `done` once, on the event loop, when the launch is over: now, if it is over already."""

    def stop(self, effect: EffectId, cause: Failure) -> None:
        """TERM, grace, KILL, sweep. `done` is called as usual when nothing of the launch lives any more."""
