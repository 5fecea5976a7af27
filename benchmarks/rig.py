"""Runs workflows on a real engine inside this process, and notes when each fact became durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW

PLAYED = {"": AgentChoice(name="scripted")}


class Noting:
    """An observer that notes the time of every durable tick."""

    def __init__(self) -> None:
        self.at_s: list[float] = []
        self.events = 0
        self._so_far: list[int] = []

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        self.at_s.append(time.perf_counter())
        self.events += len(events)
        self._so_far.append(self.events)

    def rate(self, begin: float, end: float) -> float:
        """Events per second in the middle: from one share of the ticks to another."""
        first, last = int(len(self.at_s) * begin), int(len(self.at_s) * end)
        return (self._so_far[last] - self._so_far[first]) / (self.at_s[last] - self.at_s[first])

    def noticed(self, driver: Driver, text: str) -> None:
        raise AssertionError(text)


def chain(length: int, prompt: Path, **options: object) -> WorkflowSpec:
    """Steps in a row; in-process agents unless said otherwise."""
    steps = tuple(
        StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=str(prompt), needs=(f"s{n - 1}",) if n else ())
        for n in range(length)
    )
    return WorkflowSpec(name="chain", steps=steps, **{"agents": PLAYED, **options})  # type: ignore[arg-type]


class Rig:
    """One repository with its store."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.prompt = folder / "prompt.md"
        self.prompt.write_text("Do it.\n")
        self.orchestrator = Orchestrator(str(folder))

    def create(self, run: str, spec: WorkflowSpec) -> StoredRun:
        home = str(self.orchestrator.settings.home)
        created_us = self.orchestrator.clock.now_us()
        context = Context(run=RunId(run), home=home, workdir=home, created_us=created_us)
        return self.orchestrator.create(WORKFLOW, spec, spec.name, context)

    def drive(self, *runs: StoredRun) -> Noting:
        """Drives runs side by side on one engine, to their end."""
        noting = Noting()

        async def main() -> None:
            engine = Engine(self.orchestrator.world(runs[0]), noting)
            ended = await asyncio.gather(*(engine.drive(run, WORKFLOW, lambda driver: True) for run in runs))
            assert all(summary.status == "completed" for summary in ended), ended

        asyncio.run(main())
        return noting

    def close(self) -> None:
        self.orchestrator.close()
