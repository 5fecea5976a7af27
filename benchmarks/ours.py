"""Our side of the comparison, asked like everybody else."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Event
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.journal import fold
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.systems.workflow.events import StepCompleted, StepStarted, WorkflowEvent
from agent_orchestrator.systems.workflow.system import WORKFLOW
from benchmarks.protocol import serve
from benchmarks.rig import PLAYED, Rig, chain

BROKEN_OFF = "broken-off"
LAST = "last"
"""The role of the steps that real programs take: they say what time it is."""
CLOCK = AgentChoice(name="command", options={"argv": ["/bin/date", "+%s%N"]})
FILLED_AT_ONCE = 1_000


class Ours:
    """One repository."""

    def __init__(self, store: str = "") -> None:
        self._runs, self._store = 0, store

    def open(self, folder: str) -> None:
        """Open its store."""
        self._rig = Rig(Path(folder), self._store)

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Run a chain of in-process agents, the earlier steps included; return the seconds of each step after them."""
        return _gaps(self._drive(earlier + count + 2, {}))[-count:]

    def handovers(self, count: int, argv: Sequence[str] = ("/bin/true",)) -> list[float]:
        """Run a chain of a program; return the seconds from each one's start to the next one's."""
        agents = {"": AgentChoice(name="command", options={"argv": list(argv)})}
        return _gaps(self._drive(count + 2, {"agents": agents}))[-count:]

    def store_many(self, runs: int, steps: int) -> None:
        """Store so many chains, to be driven by `drive_many`."""
        self._runs += 1
        name = f"many{os.getpid()}-{self._runs}"  # Another process may do the same in this store.
        self._many = [self._rig.create(f"{name}-{n}", chain(steps, self._rig.prompt)) for n in range(runs)]

    def drive_many(self) -> tuple[float, float, int]:
        """Drive them on one engine; return when the middle of it began and ended, which all are at work in, and its events."""
        return self._rig.drive(*self._many).middle(0.1, 0.9)

    def loads(self) -> tuple[float, float]:
        """Fold the run that was broken off, and read its rows bare, typed; return the seconds of both."""
        stored, store = self._rig.orchestrator.find(BROKEN_OFF), self._rig.orchestrator.settings.folder
        before_s = _read_bare(store / "orc.db")
        began = time.perf_counter()
        opened = SqliteStore(store)
        state = fold(opened, WORKFLOW, stored).state
        ours_s = time.perf_counter() - began
        opened.close()
        assert state.steps
        del state
        gc.collect()
        return ours_s, (before_s + _read_bare(store / "orc.db")) / 2

    def fill(self, runs: int, steps: int) -> None:
        """Store runs, and drive every second one to its end."""
        stored = [self._rig.create(f"stored{n}", chain(steps, self._rig.prompt)) for n in range(runs)]
        for begin in range(0, runs, FILLED_AT_ONCE):
            self._rig.drive(*stored[begin : begin + FILLED_AT_ONCE : 2])

    def interrupt(self, earlier: int) -> None:
        """End this process where the step after so many has been journaled as begun, and its agent is not started yet."""

        def seen(driver: Driver, events: Sequence[Event]) -> None:
            if any(isinstance(event, StepStarted) and event.step == f"s{earlier}" for event in events):
                os._exit(0)

        spec = chain(earlier + 2, self._rig.prompt, agents={**PLAYED, LAST: CLOCK})
        steps = (*spec.steps[:earlier], *(msgspec.structs.replace(step, agent=LAST) for step in spec.steps[earlier:]))
        self._rig.drive(self._rig.create(BROKEN_OFF, msgspec.structs.replace(spec, steps=steps)), seen=seen)

    def resume(self, folder: str) -> int:
        """Go on with the run that was broken off; return the time at which its next agent was at work, as the agent says."""
        self.open(folder)

        def seen(driver: Driver, events: Sequence[Event]) -> None:
            if any(isinstance(event, StepCompleted) for event in events):
                driver.leave()

        run = self._rig.orchestrator.find(BROKEN_OFF)
        self._rig.go_on(run, seen)
        launches = self._rig.orchestrator.settings.folder / "launches" / run.id
        return min(int(file.read_text()) for file in launches.glob("*/out") if file.stat().st_size)

    def _drive(self, length: int, options: dict[str, Any]) -> list[float]:
        self._runs += 1
        return self._rig.drive(self._rig.create(f"run{self._runs}", chain(length, self._rig.prompt, **options))).at_s


def _gaps(at_s: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(at_s)]


def _read_bare(database: Path) -> float:
    """Read and decode the rows of a store with a single run."""
    began = time.perf_counter()
    db = apsw.Connection(str(database))
    event_type: Any = list[WorkflowEvent]
    decode = msgspec.json.Decoder(event_type).decode
    rows: Any = db.execute("SELECT seq, at_us, body FROM events ORDER BY run, seq").fetchall()
    decoded = [decode(body) for _, _, body in rows]
    db.close()
    took = time.perf_counter() - began
    assert decoded
    return took


if __name__ == "__main__":
    ours = Ours(*sys.argv[1:])
    serve(
        open=ours.open,
        steps=ours.steps,
        handovers=ours.handovers,
        store_many=ours.store_many,
        drive_many=ours.drive_many,
        loads=ours.loads,
        fill=ours.fill,
        interrupt=ours.interrupt,
        resume=ours.resume,
    )
