"""Many busy runs take turns in being printed: each has its own, and none holds the others up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.clock import run_jumping
from tests.unit.engine.rig import Rig, jump


def test_of_many_busy_runs_each_is_printed_in_its_turn(tmp_path: Path) -> None:
    """They share their commits: whenever one of them is durable, all others are ahead of the journal again."""
    rig = Rig(tmp_path)

    def documents(state: Any, now_us: int) -> Iterable[Document]:
        rig.clock.advance(0.001)
        return WORKFLOW.documents(state, now_us)

    rig.system = msgspec.structs.replace(WORKFLOW, moments={}, documents=documents)
    rig.store.on_append = lambda batch: rig.clock.advance(0.1)
    steps = [StepSpec(id=f"s{n}", agent="worker", prompt="p", needs=(f"s{n - 1}",) if n else ()) for n in range(60)]
    spec = WorkflowSpec(name="chain", steps=tuple(steps), agents={"": AgentChoice(name="scripted")})
    rig.drive_all([rig.create(spec, name) for name in ("one", "two", "three")])
    prints = Counter(part.run for batch in rig.store.batches for part in batch if part.printed)
    assert min(prints.values()) >= max(prints.values()) / 2 >= 10


def test_nobody_waits_behind_a_run_that_rests_or_is_let_go(tmp_path: Path) -> None:
    rig = Rig(tmp_path, system=WORKFLOW)
    spec = WorkflowSpec(
        name="one step", steps=(StepSpec(id="s", agent="worker", prompt="p"),), agents={"": AgentChoice(name="x")}
    )
    runs = [rig.create(spec, name) for name in ("one", "two")]

    async def main() -> None:
        for end in ("rest", "let go"):
            engine = Engine(rig.world(), rig.notes)
            ahead, other = (Driver(engine, run, WORKFLOW) for run in runs)
            for driver in (ahead, other):
                engine.publisher.open(driver)
                engine.publisher.offer(driver, idle=True)
            await jump(engine, 1.0)
            ahead.durable = False
            for driver in (ahead, other):
                driver.state.updated_us = rig.clock.now_us()
                engine.publisher.offer(driver, idle=False)
            await jump(engine, 1.0)
            if end == "rest":
                ahead.durable = True
                engine.publisher.offer(ahead, idle=True)
            else:
                engine.publisher.close(ahead)
            await jump(engine, 1.0)
            shown = json.loads((rig.home / ".agents/runs/two/run_state.json").read_bytes())
            assert shown["updated_at"] == iso(other.state.updated_us), end

    run_jumping(main(), rig.clock)
