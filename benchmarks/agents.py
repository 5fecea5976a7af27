"""The cost of real processes: handing over from one agent to the next, and watching a thousand that say nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from benchmarks.bare import BareJournal, bare_launch_s, bare_shim_s
from benchmarks.measure import Measure, of_rounds
from benchmarks.rig import Noting, Rig, chain

ROUNDS = 11
LIVE = 1_000
SETTLE_S = 15.0
"""The time in which the looks at a launch fall from 50 times a second to their resting rate."""
QUIET_S = 10.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def handover(folder: Path) -> Iterator[Measure]:
    """From one agent's start to the next one's (agents are `true`) against one bare shim run and one bare commit."""
    ratios, kept = [], []
    bare = BareJournal(folder)
    rig = Rig(folder / "repo")
    agents = {"": AgentChoice(name="command", options={"argv": ["/bin/true"]})}
    for number in range(ROUNDS):
        floor = statistics.median(bare.commits(100)) + statistics.median(bare_shim_s(folder) for _ in range(60))
        noting = rig.drive(rig.create(f"run{number}", chain(60, rig.prompt, agents=agents)))
        floor += statistics.median(bare.commits(100)) + statistics.median(bare_shim_s(folder) for _ in range(60))
        gaps = [after - before for before, after in itertools.pairwise(noting.at_s)]
        ratios.append(2 * statistics.median(gaps[5:]) / floor)
        launches = statistics.median(bare_launch_s(folder, 100 * number + n) for n in range(60))
        kept.append(2 * (launches + statistics.median(bare.commits(100))) / floor)
    rig.close()
    bare.close()
    note = f"a bare shim run that makes and keeps its own files is {statistics.median(kept):.2f} by itself"
    yield of_rounds("agent to agent / (bare shim run + bare commit) (p50)", ratios, 1.5, note=note)


def thousand_quiet(folder: Path) -> Iterator[Measure]:
    """Memory, processor and the longest stall of the loop with 1,000 live agents."""
    rig = Rig(folder / "repo")
    agents = {"": AgentChoice(name="command", options={"argv": ["/bin/sleep", str(SETTLE_S + QUIET_S + 20)]})}
    steps = tuple(StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=str(rig.prompt)) for n in range(LIVE))
    spec = WorkflowSpec(name="quiet", steps=steps, agents=agents, max_parallel=LIVE)
    figures = asyncio.run(_watch(rig, spec))
    rig.close()
    yield Measure(name="memory with 1,000 live agents", value=figures["memory_mb"], bound=60, unit="MB")
    yield Measure(name="one core while they are quiet", value=figures["core_percent"], bound=1, unit="%")
    yield Measure(name="longest stall of the loop while 1,000 start", value=figures["start_stall_ms"], bound=50, unit="ms")
    yield Measure(name="longest stall of the loop while 1,000 end", value=figures["end_stall_ms"], bound=50, unit="ms")


async def _watch(rig: Rig, spec: WorkflowSpec) -> dict[str, float]:
    run = rig.create("quiet", spec)
    engine = Engine(rig.orchestrator.world(run), Noting())
    stalls = asyncio.create_task(_longest_stall())
    driven = asyncio.create_task(engine.drive(run, WORKFLOW, lambda driver: True))
    while not driven.done() and await asyncio.to_thread(_alive, rig) < LIVE:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.5)
    start_stall_s = await _stop(stalls)
    await asyncio.sleep(SETTLE_S)
    before = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(QUIET_S)
    after = resource.getrusage(resource.RUSAGE_SELF)
    memory = _memory_mb()
    stalls = asyncio.create_task(_longest_stall())
    summary = await driven
    assert summary.status == "completed", summary
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "memory_mb": memory,
        "core_percent": 100 * used_s / QUIET_S,
        "start_stall_ms": 1000 * start_stall_s,
        "end_stall_ms": 1000 * await _stop(stalls),
    }


def _memory_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def _alive(rig: Rig) -> int:
    launches = rig.orchestrator.settings.folder / "launches" / "quiet"
    return sum(1 for _ in launches.glob("*/out"))


async def _longest_stall() -> float:
    longest, last = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            longest = max(longest, now - last - 0.005)
            last = now
    except asyncio.CancelledError:
        return longest


async def _stop(stalls: asyncio.Task[float]) -> float:
    stalls.cancel()
    return await stalls
