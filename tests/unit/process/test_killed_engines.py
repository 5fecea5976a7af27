"""Whatever the moment at which an engine is killed: no launch is started twice, none is forgotten."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.launches import Standing
from tests.unit.process.rig import PATIENCE_S, ending_of, make_launches, name, over, sh

LAUNCHES = 12
DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = eval(sys.argv[1])
from tests.unit.process.rig import make_launches, name, sh
from tests.unit.process.test_killed_engines import LAUNCHES, SCRIPT
here = Path(sys.argv[2])
launches = make_launches(here)
for launch in range(1, LAUNCHES + 1):
    launches.start(sh(here, SCRIPT.format(launch=launch), effect=name(launch)))
"""
SCRIPT = "echo started >>log.{launch}; sleep 0.05; echo ended >>log.{launch}"


@pytest.mark.parametrize("mark", ["lock", "out"])
@pytest.mark.parametrize("launch", [1, 6, 11])
def test_every_launch_runs_exactly_once_or_is_reported_lost(tmp_path: Path, mark: str, launch: int) -> None:
    """The engine is killed the moment that a file of the launch appears."""
    file = make_launches(tmp_path).directory(name(launch)) / mark

    async def play() -> None:
        driver = await asyncio.create_subprocess_exec(sys.executable, "-c", DRIVER, repr(sys.path), str(tmp_path))
        async with asyncio.timeout(PATIENCE_S):
            while not file.exists():  # noqa: ASYNC110 - another process has no asyncio.Event to set
                await asyncio.sleep(0)
        if driver.returncode is None:
            os.kill(driver.pid, signal.SIGKILL)
        await driver.wait()
        launches = make_launches(tmp_path)
        for launch in range(1, LAUNCHES + 1):
            if launches.standing(name(launch), same_boot=True) is Standing.NEW:
                launches.start(sh(tmp_path, SCRIPT.format(launch=launch), effect=name(launch)))
        futures = [ending_of(launches, name(launch)) for launch in range(1, LAUNCHES + 1)]
        for launch, future in enumerate(futures, 1):
            ending = await over(future)
            log = tmp_path / f"log.{launch}"
            lines = log.read_text().split() if log.exists() else []
            if ending.cause is None:
                assert (ending.exit_code, lines) == (0, ["started", "ended"])
            else:  # killed between the mark and the spawn: said to be lost, and it never ran
                assert (ending.cause.kind, lines) == (FailureKind.LOST, [])

    asyncio.run(play())
