"""The ground of the tests of real processes: launches in a scratch folder, and waits with a bound."""

from __future__ import annotations

import asyncio
import heapq
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId, RunId, UnitId, effect_id
from agent_orchestrator.engine.clock import SystemClock, boot_id
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.process import ProcessLaunches

PATIENCE_S = 30.0
STOPPED = Failure(kind=FailureKind.STOPPED, message="asked to stop")
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def make_launches(tmp_path: Path, *, pidfds: bool = True, cgroups: bool = True) -> ProcessLaunches:
    return ProcessLaunches(tmp_path / "launches", SystemClock(), boot_id(), pidfds=pidfds, cgroups=cgroups)


def name(launch: int = 1, *, run: str = "run1", unit: str = "build") -> EffectId:
    return effect_id(RunId(run), UnitId(unit), 0, 1, launch, "agent")


def order(
    cwd: Path, *argv: str, effect: EffectId | None = None, stdin: Path | None = None, env: dict[str, str] | None = None
) -> Order:
    return Order(effect=effect or name(), argv=argv, env={**ENV, **(env or {})}, cwd=cwd, stdin=stdin)


def sh(cwd: Path, script: str, *, effect: EffectId | None = None) -> Order:
    return order(cwd, "sh", "-c", script, effect=effect)


def ending_of(launches: ProcessLaunches, effect: EffectId, limits: Watch | None = None) -> asyncio.Future[Ending]:
    future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
    launches.watch(effect, limits or Watch(), future.set_result)
    return future


async def over(future: asyncio.Future[Ending]) -> Ending:
    return await asyncio.wait_for(future, PATIENCE_S)


async def until(condition: Callable[[], object]) -> None:
    """Waits for something that another process does."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - another process has no asyncio.Event to set
            await asyncio.sleep(0.005)


def run_to_end(tmp_path: Path, start: Order, limits: Watch | None = None, *, pidfds: bool = True, cgroups: bool = True) -> Ending:
    async def play() -> Ending:
        launches = make_launches(tmp_path, pidfds=pidfds, cgroups=cgroups)
        launches.start(start)
        ending = await over(ending_of(launches, start.effect, limits))
        launches.close()
        return ending

    return asyncio.run(play())


class Turns:
    """An event loop for a part that only asks to be called: its clock jumps to whatever is due next."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._calls: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._loop = asyncio.new_event_loop()
        self._loop.close()

    def time(self) -> float:
        return self._now_s

    def call_later(self, wait_s: float, act: Callable[..., object], *given: object) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self._now_s + wait_s, act, given, self._loop)
        self._count += 1
        heapq.heappush(self._calls, (handle.when(), self._count, handle))
        return handle

    def call_soon(self, act: Callable[..., object], *given: object) -> asyncio.Handle:
        return self.call_later(0.0, act, *given)

    def play(self, calls: int = sys.maxsize) -> None:
        """Make so many calls, or all that there are and that follow from them."""
        while self._calls and calls > 0:
            due_s, _, handle = heapq.heappop(self._calls)
            if not handle.cancelled():
                self._now_s = max(self._now_s, due_s)
                handle._run()
            calls -= 1


def is_alive(pid: int) -> bool:
    """Return True if the process runs; a zombie is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def number_in(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return None
    return int(text) if text else None


DRIVER = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.unit.process.rig import ending_of, make_launches, sh, until
async def main():
    launches = make_launches(Path({scratch!r}))
    launches.start(sh(Path({cwd!r}), {script!r}))
    future = ending_of(launches, {effect!r})
    Path({cwd!r}, "driving").touch()
    await asyncio.wait_for(future, 60)
asyncio.run(main())
"""


async def killed_driver(tmp_path: Path, script: str) -> None:
    """Another engine starts the script, watches it, and is killed with -9."""
    text = DRIVER.format(path=sys.path, scratch=str(tmp_path), cwd=str(tmp_path), script=script, effect=name())
    driver = await asyncio.create_subprocess_exec(sys.executable, "-c", text)
    await until(lambda: (tmp_path / "driving").exists() and (tmp_path / "at_work").exists())
    driver.send_signal(signal.SIGKILL)
    await driver.wait()
