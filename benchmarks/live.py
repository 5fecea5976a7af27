"""An engine with many living agents, asked like the others: its memory, its processor time, its stalls, its delays.

An agent is a small Perl program: it starts in milliseconds, so that a thousand of them leave the machine to the engine. It
waits, silent or printing, until a pipe says that it is over; then each ends a little after the other.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Event
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.systems.workflow.events import AgentFinished
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from benchmarks.protocol import serve
from benchmarks.rig import Noting, Rig

AGENT = """\
use Fcntl;
my ($pipe, $chatty, $apart) = @ARGV;
sysopen(my $go, $pipe, O_RDONLY | O_NONBLOCK) or die $!;
my $wanted = ''; vec($wanted, fileno($go), 1) = 1;
my $chunk = (("x" x 99) . "\\n") x 175;  # 17,500 bytes a second are 1 MB a minute
while (1) {
  my $ready = $wanted;
  last if select($ready, undef, undef, $chatty ? 1 : undef) > 0;
  syswrite(STDOUT, $chunk);
}
select(undef, undef, undef, $apart * substr($ENV{STEP_ID}, 1));
"""
ALIVE_S = 120.0
APART_S = 0.01
LAG_S = 0.005
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
RUN = "live"


class Stalls:
    """A task that finds out how long the loop was busy with something else, and how much of that it had a processor."""

    def __init__(self) -> None:
        self._longest = (0.0, 0.0)
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        last_s, worked_s = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(LAG_S)
            now_s, now_worked_s = time.perf_counter(), time.thread_time()
            self._longest = max(self._longest, (now_s - last_s - LAG_S, now_worked_s - worked_s))
            last_s, worked_s = now_s, now_worked_s

    def take_ms(self) -> tuple[float, float]:
        """Return the longest stall so far and what the loop's own work was of it, and begin anew."""
        (longest_s, worked_s), self._longest = self._longest, (0.0, 0.0)
        return 1000 * longest_s, 1000 * worked_s

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Live:
    """One engine with one run of many steps at once."""

    def open(self, folder: str) -> None:
        """Open the store."""
        self._folder = Path(folder)
        self._rig = Rig(self._folder / "repo")

    def live(self, agents: int, settle_s: float, quiet_s: float, *, chatty: bool) -> dict[str, Any]:
        """Start agents, look at the engine while they live, then let them end one after the other."""
        perl = shutil.which("perl")
        assert perl is not None, "the agents are written in Perl, and there is none"
        pipe, program = self._folder / "pipe", self._folder / "agent.pl"
        os.mkfifo(pipe)
        program.write_text(AGENT)
        argv = [perl, str(program), str(pipe), "1" if chatty else "0", str(APART_S)]
        prompt = str(self._rig.prompt)
        steps = tuple(StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=prompt) for n in range(agents))
        choice = {"": AgentChoice(name="command", options={"argv": argv})}
        spec = WorkflowSpec(name=RUN, steps=steps, agents=choice, max_parallel=agents)
        return asyncio.run(self._watch(spec, agents, pipe, settle_s, quiet_s))

    async def _watch(self, spec: WorkflowSpec, agents: int, pipe: Path, settle_s: float, quiet_s: float) -> dict[str, Any]:
        noticed_s: dict[str, float] = {}

        def seen(driver: Driver, events: Sequence[Event]) -> None:
            now_s = time.time()
            noticed_s.update({event.step: now_s for event in events if isinstance(event, AgentFinished)})

        run = self._rig.create(RUN, spec)
        engine = Engine(self._rig.orchestrator.world(run), Noting(seen))
        stalls, began_s = Stalls(), time.monotonic()
        driven = asyncio.create_task(engine.drive(run, WORKFLOW, lambda driver: True))
        while not driven.done() and await asyncio.to_thread(self._count_started) < agents:
            assert time.monotonic() < began_s + ALIVE_S, "they did not all start"
            await asyncio.sleep(0.1)
        start_s, start_stall = time.monotonic() - began_s, stalls.take_ms()
        await asyncio.sleep(settle_s)
        stalls.take_ms()
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(quiet_s)
        after = resource.getrusage(resource.RUSAGE_SELF)
        memory_mb, quiet_stall = _memory_mb(), stalls.take_ms()
        assert not noticed_s, "an agent ended before it was told to"
        opened = await asyncio.to_thread(os.open, pipe, os.O_RDWR)
        os.write(opened, b"x")
        summary = await driven
        os.close(opened)
        end_stall = stalls.take_ms()
        await stalls.close()
        assert summary.status == "completed", summary
        used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "start_s": start_s,
            "memory_mb": memory_mb,
            "core_percent": 100 * used_s / quiet_s,
            "start_stall_ms": start_stall,
            "quiet_stall_ms": quiet_stall,
            "end_stall_ms": end_stall,
            "delays_ms": sorted(1000 * (noticed_s[step] - ended_s) for step, ended_s in self._list_ends()),
        }

    def _launches(self) -> Path:
        return self._rig.orchestrator.settings.folder / "launches" / RUN

    def _count_started(self) -> int:
        return sum(1 for _ in self._launches().glob("*/out"))

    def _list_ends(self) -> list[tuple[str, float]]:
        """Return the steps with the time at which their shim wrote that the agent is over."""
        marks = self._launches().glob("*/exit.0")
        return [(mark.parent.name.partition("~")[0], mark.stat().st_mtime) for mark in marks]


def _memory_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


if __name__ == "__main__":
    live = Live()
    serve(open=live.open, live=live.live)
