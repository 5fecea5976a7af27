"""Effects that only wait or look: timers, gates kept in a file, a file of the working tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.effects import AwaitGates, ReadFile, Wait
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import FileRead, GatesOpened, TimerFired
from agent_orchestrator.core.limits import GATE_POLL_S, REPORT_LIMIT_BYTES, WAIT_RECHECK_S
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.perform.work import Finished, Waiting
from agent_orchestrator.errors import is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


class TimerWork(Waiting):
    """Waits for a wall-clock time. Compared again every 30 s: monotonic timers stand still in suspend.

    A clock that is set back makes no wait longer than it was when it began: monotonic time ends it, too.
    """

    def __init__(self, driver: Driver, effect: Wait, finished: Finished) -> None:
        super().__init__(driver, finished)
        self.effect = effect
        clock = driver.engine.clock
        left_us = effect.until_us - max(clock.now_us(), driver.folded.at_us)  # It may have been set back before, too.
        self._ends_s = clock.monotonic_s() + left_us / US

    def _look(self) -> None:
        clock = self.driver.engine.clock
        left_s = min((self.effect.until_us - clock.now_us()) / US, self._ends_s - clock.monotonic_s())
        if left_s <= 0:
            self.over(TimerFired(effect=self.effect.id))
        else:
            self.look_again(min(left_s, WAIT_RECHECK_S))


class GatesWork(Waiting):
    """Waits until all gates are open in the gate file; a missing or broken file means closed, and is said once."""

    def __init__(self, driver: Driver, effect: AwaitGates, finished: Finished) -> None:
        super().__init__(driver, finished)
        self.effect = effect
        self._said = ""

    def _look(self) -> None:
        gates = self._read()
        if all(gates.get(name) is True for name in self.effect.names):
            self.over(GatesOpened(effect=self.effect.id))
        else:
            self.look_again(GATE_POLL_S)

    def _read(self) -> dict[str, object]:
        file = Path(self.effect.file)
        try:
            return typed.decode(read_bounded(file, REPORT_LIMIT_BYTES), dict[str, object])
        except FileNotFoundError:
            problem = "does not exist yet"
        except OSError as error:
            problem = f"cannot be read ({error})"
        except (msgspec.DecodeError, RecursionError) as error:
            problem = f"is not a JSON object ({error})"
        if problem != self._said:
            self._said = problem
            self.driver.engine.notify(self.driver, f"The gate file {file} {problem}; its gates count as closed.")
        return {}


class ReadWork(Waiting):
    """Reads a file of the working tree; links that lead out of it are not followed."""

    def __init__(self, driver: Driver, effect: ReadFile, finished: Finished) -> None:
        super().__init__(driver, finished)
        self.effect = effect

    def _look(self) -> None:
        self.driver.engine.loop.call_soon(self._settle)

    def _settle(self) -> None:
        try:
            self.over(self._read())
        except OSError:  # The machine is short of something: that says nothing about the file.
            self.look_again(GATE_POLL_S)

    def _read(self) -> FileRead:
        root = self.driver.tree(self.effect.tree).resolve()
        file = (root / self.effect.path).resolve()
        try:
            if not file.is_relative_to(root):
                raise PermissionError("it lies outside the working tree")
            # Resolved once, and then opened through no link: one that is planted in between is not followed.
            text = read_bounded(file, REPORT_LIMIT_BYTES, root=root).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            if is_shortage(error):
                raise
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            failure = Failure(kind=FailureKind.SPEC, message=f"{self.effect.path} cannot be read: {reason}")
            return FileRead(effect=self.effect.id, failure=failure)
        return FileRead(effect=self.effect.id, text=text)
