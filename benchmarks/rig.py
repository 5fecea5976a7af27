"""Runs on a real engine inside this process, with a note of when each fact became durable. Print-outs are on, as always."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_orchestrator.config import choose_store
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.runs.exclusion import hide_files
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW

PLAYED = {"": AgentChoice(name="scripted")}

Seen = Callable[[Driver, Sequence[Event]], None]


class Noting:
    """An observer that notes the time of every durable tick."""

    def __init__(self, seen: Seen | None = None) -> None:
        self.at_s: list[float] = []
        self.events = 0
        self.so_far: list[int] = []
        self._seen = seen

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Note it."""
        self.at_s.append(time.monotonic())
        self.events += len(events)
        self.so_far.append(self.events)
        if self._seen is not None:
            self._seen(driver, events)

    def noticed(self, driver: Driver, text: str) -> None:
        """Fail: nothing that a person should know may happen here."""
        raise AssertionError(text)

    def middle(self, begin: float, end: float) -> tuple[float, float, int]:
        """Return two times, from one share of the ticks to another, and the events between them.

        The times are those of a clock that all processes of a machine share, so that engines side by side can be added up.
        """
        first, last = int(len(self.at_s) * begin), int(len(self.at_s) * end)
        return self.at_s[first], self.at_s[last], self.so_far[last] - self.so_far[first]


def chain(length: int, prompt: Path, **options: object) -> WorkflowSpec:
    """Return steps in a row; in-process agents unless said otherwise."""
    steps = tuple(
        StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=str(prompt), needs=(f"s{n - 1}",) if n else ())
        for n in range(length)
    )
    return WorkflowSpec(name="chain", steps=steps, **{"agents": PLAYED, **options})  # type: ignore[arg-type]


class Rig:
    """One repository with its store."""

    def __init__(self, folder: Path, store: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.prompt = folder / "prompt.md"
        self.prompt.write_text("Do it.\n")
        choose_store(store or None)
        self.orchestrator = Orchestrator(str(folder))

    def create(self, run: str, spec: WorkflowSpec) -> StoredRun:
        """Store a run, and hide its files from git as any command does that drives one."""
        home = str(self.orchestrator.settings.home)
        created_us = self.orchestrator.clock.now_us()
        context = Context(run=RunId(run), home=home, workdir=home, created_us=created_us)
        stored = self.orchestrator.create(WORKFLOW, spec, spec.name, context)
        hide_files(self.orchestrator, stored)
        return stored

    def drive(self, *runs: StoredRun, seen: Seen | None = None) -> Noting:
        """Drive runs side by side on one engine, to their end."""
        noting = Noting(seen)

        async def main() -> None:
            engine = self._engine(runs[0], noting)
            ended = await asyncio.gather(*(engine.drive(run, WORKFLOW, lambda driver: True) for run in runs))
            assert all(summary.status == "completed" for summary in ended), ended

        asyncio.run(main())
        return noting

    def go_on(self, run: StoredRun, seen: Seen) -> None:
        """Drive a run again until it is left."""

        async def main() -> None:
            await self._engine(run, Noting(seen)).drive(run, WORKFLOW, lambda driver: True)

        asyncio.run(main())

    def _engine(self, run: StoredRun, noting: Noting) -> Engine:
        """Return an engine whose runs end with an error when one happens beside them."""
        engine = Engine(self.orchestrator.world(run), noting)
        engine.loop.set_exception_handler(lambda loop, about: engine.fail(RuntimeError(str(about))))
        return engine

    def close(self) -> None:
        """Close the store."""
        self.orchestrator.close()
