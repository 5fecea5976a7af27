"""A simulated machine: programs that outlive the engine that started them, with the same marks and locks as real ones.

`SimulatedLaunches` is one engine's view of it. A crash can come between lock, mark and spawn; a reboot ends everything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import msgspec

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId, RunId, launch_folder, run_of, split_effect_id
from agent_orchestrator.engine.launches import Order, Standing, Watch
from agent_orchestrator.errors import Shortage
from agent_orchestrator.testing.clock import FakeClock
from agent_orchestrator.testing.faults import Faults, FaultyStore

LOOK_S = 0.25


class LaunchCourse(msgspec.Struct, frozen=True):
    """The course of one launch: what it does, and when."""

    takes_s: float
    exit_code: int = 0
    report: dict[str, object] | None = None
    ignores_term_s: float = 0.0
    says: tuple[tuple[float, str], ...] = ()
    """Lines that it writes, each so many seconds after its start, in order."""


class Process(msgspec.Struct):
    """A launch as the machine knows it."""

    effect: EffectId
    started_us: int
    started_s: float
    part: LaunchCourse
    marked: bool = True
    alive: bool = False
    exit_code: int | None = None
    ended_us: int = 0
    ends_s: float = 0.0
    said: int = 0
    stopped: bool = False
    """It was stopped, and its end is not settled."""


class Machine:
    """The machine that the engines run on: its programs, files and clock."""

    def __init__(self, seed: int, folder: Path, faults: Faults, cast: Callable[[EffectId, random.Random], LaunchCourse]) -> None:
        self.clock = FakeClock()
        self.faults = faults
        self.store = FaultyStore(faults)
        self.folder = folder
        self.boot = 1
        self.processes: dict[EffectId, Process] = {}
        self.starts: list[str] = []
        self._cast, self._random = cast, random.Random(seed)

    def begin(self, order: Order) -> None:
        """Start a program; its course is decided now, by the seed."""
        run, unit, _ = split_effect_id(order.effect)
        assert order.effect not in self.starts, f"{order.effect} was started twice"
        assert self.store.knows(run, order.effect), f"{order.effect} was started before its fact was durable"
        for other in self.processes.values():
            beside = split_effect_id(other.effect)[:2] == (run, unit) and other.alive
            assert not beside, f"{order.effect} runs beside {other.effect}"
        self.starts.append(order.effect)
        process = self.processes[order.effect]
        process.alive = True
        process.ends_s = self.clock.monotonic_s() + process.part.takes_s

    def mark(self, effect: EffectId) -> None:
        """Mark that a launch is about to start."""
        part = self._cast(effect, self._random)
        self.processes[effect] = Process(effect, self.clock.now_us(), self.clock.monotonic_s(), part)

    def pass_time(self) -> None:
        """End the programs whose time has come, whoever watches."""
        now_s = self.clock.monotonic_s()
        for process in self.processes.values():
            if process.alive and process.part.says:
                self._say(process, min(now_s, process.ends_s))
            if process.alive and process.ends_s <= now_s:
                self.end(process, process.part.exit_code)

    def _say(self, process: Process, now_s: float) -> None:
        """Write the lines that are due."""
        says, first = process.part.says, process.said
        while process.said < len(says) and process.started_s + says[process.said][0] <= now_s:
            process.said += 1
        if process.said > first:
            directory = self.directory(process.effect)
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / "out").open("a", encoding="utf-8") as out:
                out.writelines(f"{line}\n" for _, line in says[first : process.said])

    def end(self, process: Process, exit_code: int) -> None:
        """End a program, which leaves its report."""
        process.alive, process.exit_code, process.ended_us = False, exit_code, self.clock.now_us()
        if process.part.report is not None and exit_code == process.part.exit_code:
            directory = self.directory(process.effect)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / "report.json").write_bytes(msgspec.json.encode(process.part.report))

    def reboot(self) -> None:
        """Reboot: every program is gone, and marks that were not synced may be too."""
        self.boot += 1
        for effect, process in list(self.processes.items()):
            if process.alive:
                process.alive = False
                if self._random.random() < 0.5:
                    del self.processes[effect]

    def directory(self, effect: EffectId) -> Path:
        """Return the folder of a launch's files."""
        return self.folder / launch_folder(effect)

    def next_end_s(self) -> float | None:
        """Return the seconds until the next program ends, or writes something."""
        ends = [process.ends_s for process in self.processes.values() if process.alive]
        lines = [
            process.started_s + process.part.says[process.said][0]
            for process in self.processes.values()
            if process.alive and process.said < len(process.part.says)
        ]
        return min(ends + lines) - self.clock.monotonic_s() if ends else None


class SimulatedLaunches:
    """One engine's hands on the machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._causes: dict[str, Failure] = {}

    def directory(self, effect: EffectId) -> Path:
        """Return the folder of a launch's files."""
        return self._machine.directory(effect)

    def standing(self, effect: EffectId, *, same_boot: bool) -> Standing:
        """Return its standing as the real one does: lock first, then marks."""
        process = self._machine.processes.get(effect)
        if process is None:
            return Standing.NEW if same_boot else Standing.OVER
        return Standing.ALIVE if process.alive else Standing.OVER

    def start(self, order: Order) -> None:
        """Mark and spawn, with a boundary before, between and after."""
        machine = self._machine
        if not machine.faults.calm and machine.faults.boundaries % 41 == 40:
            raise Shortage(detail="the machine is short of processes")
        machine.faults.boundary()
        if order.effect in machine.processes:
            return  # Another engine was first; watching finds it.
        machine.mark(order.effect)
        machine.faults.boundary()
        machine.begin(order)
        machine.faults.boundary()

    def living(self, run: RunId) -> list[EffectId]:
        """Return the launches of a run that are alive."""
        return sorted(effect for effect, process in self._of(run) if process.alive)

    def unsettled(self, run: RunId) -> list[EffectId]:
        """Return those that are alive, and those that were stopped and whose end is not settled."""
        return sorted(effect for effect, process in self._of(run) if process.alive or process.stopped)

    def _of(self, run: RunId) -> list[tuple[EffectId, Process]]:
        return [(effect, process) for effect, process in self._machine.processes.items() if run_of(effect) == run]

    def claim(self, effect: EffectId) -> Path | None:
        """Return None: nobody plants anything here."""
        return None

    def alive_between(self, since_ns: int, until_ns: int, run: RunId | None = None) -> EffectId | None:
        """Return None: files have the machine's real times, and processes the simulated ones."""
        return None

    def settle(self, effect: EffectId) -> None:
        """Note that its end is durable."""
        if effect in self._machine.processes:
            self._machine.processes[effect].stopped = False

    def void(self, effect: EffectId) -> None:
        """Void the launch: it can never start from now on."""
        if effect not in self._machine.processes:
            self._machine.mark(effect)

    def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
        """Look from time to time, as a poll would."""
        loop = asyncio.get_running_loop()
        machine = self._machine
        seen = 0

        def look() -> None:
            nonlocal seen
            process = machine.processes.get(effect)
            if process is not None and process.alive and limits.grew is not None and process.said > seen:
                seen = process.said
                if (why := limits.grew()) is not None:
                    self.stop(effect, why)
            if process is not None and process.alive:
                ran_s = machine.clock.monotonic_s() - process.started_s
                if limits.budget_s is not None and ran_s >= limits.budget_s:
                    self.stop(effect, Failure(kind=FailureKind.BUDGET, message="Stopped: it ran out of time"))
                elif limits.timeout_s is not None and ran_s >= limits.timeout_s:
                    self.stop(effect, Failure(kind=FailureKind.TIMEOUT, message=f"Timed out after {limits.timeout_s:g} s"))
            if process is not None and process.alive:
                loop.call_later(LOOK_S, look)
            else:
                done(self._ending(effect, process))

        loop.call_soon(look)

    def stop(self, effect: EffectId, cause: Failure) -> None:
        """Stop the program: it goes at once, or after ignoring TERM for a while."""
        process = self._machine.processes.get(effect)
        if process is None or not process.alive or effect in self._causes:
            return
        self._causes[effect] = cause
        process.stopped = True
        if process.part.ignores_term_s:
            until_s = self._machine.clock.monotonic_s() + process.part.ignores_term_s
            process.part = LaunchCourse(process.part.takes_s, 137, says=process.part.says)
            process.ends_s = min(process.ends_s, until_s)
        else:
            self._machine.end(process, 143)

    def _ending(self, effect: EffectId, process: Process | None) -> Ending:
        machine = self._machine
        cause = self._causes.get(effect)
        if process is None or process.exit_code is None:
            cause = Failure(kind=FailureKind.LOST, message="The process vanished without leaving an exit code")
        elif cause is not None and process.exit_code == 0:
            cause = None  # It was done before the signal reached it.
        directory = self.directory(effect)
        return Ending(
            exit_code=process.exit_code if process else None,
            cause=cause,
            started_us=process.started_us if process else machine.clock.now_us(),
            ended_us=process.ended_us or machine.clock.now_us() if process else machine.clock.now_us(),
            out=directory / "out",
            err=directory / "err",
        )
