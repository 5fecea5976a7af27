"""Whole engines on a simulated machine whose time jumps: real driver, slots, publisher and committer, nothing else real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AgentChoice, Effect, RunAgent
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import EffectId, RunId, UnitId, effect_id
from agent_orchestrator.core.inputs import Given
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine, World
from agent_orchestrator.engine.journal import decode_events, encode_events, fold
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import Conflict, OrcError
from agent_orchestrator.store.port import Append, NewRun, StoredRun
from agent_orchestrator.testing.clock import run_jumping
from agent_orchestrator.testing.faults import Faults, FaultyStore
from agent_orchestrator.testing.world import LaunchCourse, Machine, SimulatedLaunches
from tests.unit.engine.toy import ToySpec, ToySystem, as_system

WORDS = {"COMPLETED": "COMPLETED", "FAILED": "FAILED"}
TICK_S = 0.05

During = Callable[[Engine], Awaitable[None]]


class Recorder(FaultyStore):
    """A store that remembers every batch, and refuses when it is told to."""

    def __init__(self) -> None:
        calm = Faults()
        calm.calm = True
        super().__init__(calm)
        self.batches: list[list[Append]] = []
        self.refusals: list[OrcError] = []
        self.on_append: Callable[[Sequence[Append]], None] = lambda batch: None

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        self.on_append(batch)
        if self.refusals:
            raise self.refusals.pop(0)
        self.batches.append(list(batch))
        return super().append(batch)

    def refuse(self, *errors: OrcError) -> None:
        """The next appends fail, one error each."""
        self.refusals.extend(errors)


class Notes:
    """An observer that writes everything down."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.notices: list[str] = []

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        self.events.extend(events)

    def noticed(self, driver: Driver, text: str) -> None:
        self.notices.append(text)


class Rig:
    """A machine, a store, and as many engines one after the other as a test likes."""

    def __init__(
        self, folder: Path, cast: Callable[[EffectId], LaunchCourse] | None = None, system: System | None = None
    ) -> None:
        self.home = folder / "repo"
        self.home.mkdir()
        self.store, self.notes = Recorder(), Notes()
        faults = Faults()
        faults.calm = True
        play = cast or (lambda effect: LaunchCourse(5.0))
        self._launched = asyncio.Event()

        def launch(effect: EffectId, chance: Random) -> LaunchCourse:
            self._launched.set()
            return play(effect)

        self.machine = Machine(0, folder / "launches", faults, launch)
        self.machine.store = self.store
        self.clock = self.machine.clock
        self.toy = ToySystem()
        self.system: System = system or as_system(self.toy)
        self.tree_of: Callable[[Path, Path], str | None] = lambda workdir, scratch: "tree"
        self.redactor = Redactor(())
        self.more: dict[str, Any] = {}
        """Parts of the world besides."""
        self.launches: Callable[[], SimulatedLaunches] = lambda: SimulatedLaunches(self.machine)

    def create(self, spec: Any, run: str = "one") -> StoredRun:
        """A stored run of the system."""
        context = Context(run=RunId(run), home=str(self.home), workdir=str(self.home), created_us=self.clock.now_us())
        events, state = self.system.begin(spec, context), self.system.fresh(spec, context)
        for event in events:
            self.system.evolve(state, event, context.created_us)
        summary = self.system.summary(state)
        first = Append(run=RunId(run), expected_seq=0, at_us=context.created_us, body=encode_events(events), summary=summary)
        new = NewRun(system=self.system.name, name=run, context=context, spec=msgspec.json.encode(spec), summary=summary)
        self.store.create(new, first)
        self.store.batches.clear()
        found = self.store.run(run)
        assert found is not None
        return found

    def toys(self, *effects: Effect, run: str = "one") -> StoredRun:
        """A run of the toy system that wants these effects."""
        return self.create(ToySpec(effects), run)

    def journal(self, run: StoredRun, *events: Event) -> None:
        """Facts that an earlier process left behind before it died."""
        seq, at_us = len(self.store.rows(run.id)), self.clock.now_us()
        assert self.store.append([Append(run=run.id, expected_seq=seq, at_us=at_us, body=encode_events(events))]) == [None]
        self.store.batches.clear()

    def drive(
        self,
        run: StoredRun,
        during: During | None = None,
        *,
        inputs: Sequence[Given] = (),
        stays: Callable[[Driver], bool] = lambda driver: True,
    ) -> Summary:
        """One engine drives the run in no time."""
        return self.drive_all([run], during, inputs=inputs, stays=stays)[0]

    def drive_all(self, runs: Sequence[StoredRun], during: During | None = None, **more: Any) -> list[Summary]:
        """One engine drives all the runs."""
        answers = run_jumping(self._drive(runs, during, **more), self.clock)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if isinstance(answer, Summary)]

    def drive_each(self, runs: Sequence[StoredRun], during: During | None = None) -> list[Summary | BaseException]:
        """The same, with the errors as answers."""
        return run_jumping(self._drive(runs, during), self.clock)

    async def _drive(
        self,
        runs: Sequence[StoredRun],
        during: During | None,
        inputs: Sequence[Given] = (),
        stays: Callable[[Driver], bool] = lambda driver: True,
    ) -> list[Summary | BaseException]:
        engine = Engine(self.world(), self.notes)
        engine.loop.set_exception_handler(lambda loop, about: engine.fail(about["exception"]))
        passing = asyncio.create_task(self._pass_time())
        acting = asyncio.create_task(_act(during, engine))
        drives = [engine.drive(run, self.system, stays, inputs) for run in runs]
        answers = await asyncio.gather(*drives, return_exceptions=True)
        passing.cancel()
        await acting
        return answers

    async def _pass_time(self) -> None:
        self._launched = asyncio.Event()  # One belongs to the loop in which it was first waited for.
        while True:
            self.machine.pass_time()
            if any(process.alive for process in self.machine.processes.values()):
                await asyncio.sleep(TICK_S)
            else:  # An hour in the park has nothing that a tick could end.
                await self._launched.wait()
                self._launched.clear()

    def world(self) -> World:
        """Return the world of an engine of this rig."""
        return World(
            store=self.store,
            launches=self.launches(),
            clock=self.clock,
            boot=str(self.machine.boot),
            child_env=lambda names: {},
            redactor=self.redactor,
            tree_of=lambda workdir, scratch: self.tree_of(workdir, scratch),
            threads=False,
            **self.more,
        )

    def events(self, run: StoredRun) -> list[Event]:
        """The run's journal."""
        return [event for _, _, body in self.store.rows(run.id) for event in decode_events(self.system, body)]

    def state(self, run: StoredRun) -> Any:
        """The run's state, from its journal."""
        return fold(self.store, self.system, run).state

    def of_kind(self, run: StoredRun, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds."""
        return [event for event in self.events(run) if isinstance(event, kinds)]


async def _act(during: During | None, engine: Engine) -> None:
    if during is not None:
        await asyncio.sleep(0)
        try:
            await during(engine)
        except BaseException as error:
            engine.fail(error)  # Without what it was to do, the runs might go on for ever.
            raise


async def jump(engine: Engine, seconds: float) -> None:
    """Lets time pass on the clock that jumps."""
    end_s = engine.clock.monotonic_s() + seconds
    await until(lambda: engine.clock.monotonic_s() >= end_s)


async def until(condition: Callable[[], object]) -> None:
    """Waits on the clock that jumps."""
    while not condition():  # noqa: ASYNC110 - what is waited for is a file or a state, which set no Event
        await asyncio.sleep(0.01)


def named(unit: str, kind: str = "agent", run: str = "one", launch: int = 1) -> EffectId:
    """The id of a toy effect."""
    return effect_id(RunId(run), UnitId(unit), 0, 1, launch, kind)


def agent(unit: str, run: str = "one", launch: int = 1, **more: Any) -> RunAgent:
    """An agent's effect."""
    fields: dict[str, Any] = {
        "agent": AgentChoice(name="command", options={"argv": ["agent"]}),
        "report": ReportRule(words=WORDS),
        "prompt_text": "Work.\n",
        **more,
    }
    return RunAgent(id=named(unit, "agent", run, launch), unit=unit, role="coder", iteration=0, attempt=1, **fields)


def printed(rig: Rig) -> Any:
    """Read the file of the toy system."""
    return json.loads((rig.home / "toy.json").read_bytes())


def asides(rig: Rig) -> list[Path]:
    """List the files that were put aside for it."""
    return sorted(rig.home.glob("toy.json.*"))
