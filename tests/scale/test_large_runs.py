"""Runs of a size that nobody draws on a whiteboard go through, with correct state files and nothing left behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.engine import Engine, Silent
from agent_orchestrator.engine.process import ProcessLaunches
from agent_orchestrator.engine.process.newcomers import ids_given
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Start
from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
from agent_orchestrator.runs.workflow.start import start_workflow
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.crash.rig import read_state

CHAIN, PARALLEL, AGENTS = 10_000, 2_000, 1_000
PATIENCE_S = 240.0

pytestmark = pytest.mark.xdist_group("machine")
"""One after the other: each wants the machine for itself."""


def make_run(repo: Path, steps: list[str], **options: Any) -> tuple[Orchestrator, StoredRun]:
    """A stored run of these steps."""
    side = repo.parent / "side"
    side.mkdir()
    (side / "prompt.md").write_text("Work.\n")
    (side / "script.yaml").write_text("- step: '*'\n")
    (side / "workflow.yaml").write_text("name: large\nsteps:\n" + "\n".join(f"  - {{{step}}}" for step in steps) + "\n")
    if "agent_command" not in options:
        options["rehearse"] = str(side / "script.yaml")
    given = WorkflowOptions(workflow=str(side / "workflow.yaml"), **options)
    orchestrator = Orchestrator(str(repo))
    started = start_workflow(orchestrator, prepare(given, repo, {}).spec, Start(run_id="large"))
    started.owner.release()
    return orchestrator, started.run


def step(number: int, needs: str = "") -> str:
    return f"id: s{number}, agent: coder, prompt: prompt.md, needs: [{needs}]"


def check_state(orchestrator: Orchestrator, run: StoredRun, count: int) -> None:
    """Every step is done, once, in the state file and in the journal."""
    steps = read_state(Path(run.context.home, ".agents", "runs", run.id, "run_state.json").read_bytes())
    assert len(steps) == count
    assert {(entry["status"], entry["attempts"], entry["iteration_count"]) for entry in steps.values()} == {("COMPLETED", 1, 0)}
    folded = orchestrator.fold(run)
    assert msgspec.to_builtins(folded.state.steps) == steps
    assert (folded.state.dag.finished, len(folded.state.doing)) == (count, 0)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("shape", ["chain", "parallel"])
def test_thousands_of_rehearsed_steps_run_through(shape: str, repo: Path) -> None:
    if shape == "chain":
        steps = [step(number, f"s{number - 1}" if number else "") for number in range(CHAIN)]
    else:
        steps = [step(number) for number in range(PARALLEL)]
    before = descriptors()
    orchestrator, run = make_run(repo, steps, max_parallel=PARALLEL)
    with orchestrator:
        summary = orchestrator.drive_owned(run, Silent(), lambda driver: True)
        assert (summary.status, summary.done, summary.total) == ("completed", len(steps), len(steps))
        check_state(orchestrator, run, len(steps))
    assert descriptors() == before


async def all_live(launches: ProcessLaunches, run: str, folder: Path) -> None:
    def count() -> int:
        """Return how many live, which takes a while to look up, once each has its folder."""
        return len(launches.living(RunId(run))) if len(list(folder.glob("*"))) >= AGENTS else 0

    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(count) < AGENTS:  # noqa: ASYNC110 - processes set no Event
            await asyncio.sleep(0.1)


async def drive(orchestrator: Orchestrator, run: StoredRun, fifo: Path) -> Summary:
    """Drives the run; once every agent lives, the pipe that all of them wait for is opened, and stays open for late ones."""
    world = orchestrator.world(run)
    assert isinstance(world.launches, ProcessLaunches)
    driving = asyncio.create_task(Engine(world, Silent()).drive(run, WORKFLOW, lambda driver: True))
    await all_live(world.launches, run.id, orchestrator.settings.folder / "launches" / run.id)
    pipe = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)
    try:
        return await driving
    finally:
        os.close(pipe)
        world.launches.close()


def test_a_thousand_agents_live_at_once_and_all_are_collected(repo: Path) -> None:
    fifo = repo.parent / "pipe"
    os.mkfifo(fifo)
    ids_given()  # The files that it reads stay open for good.
    before = descriptors()
    steps = [step(number) for number in range(AGENTS)]
    orchestrator, run = make_run(repo, steps, max_parallel=AGENTS, agent_command=f"sh -c ': <{fifo}'")
    with orchestrator:
        summary = asyncio.run(drive(orchestrator, run, fifo))
        assert (summary.status, summary.done) == ("completed", AGENTS)
        check_state(orchestrator, run, AGENTS)
        assert orchestrator.launches().living(run.id) == []
        exits = list((orchestrator.settings.folder / "launches" / run.id).glob("*/exit.0"))
        assert len(exits) == AGENTS
    assert descriptors() == before
