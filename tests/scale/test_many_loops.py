"""Two hundred loops at once, in several processes: the registry is whole at every instant and loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, LOOPS_EACH = 4, 50
PATIENCE_S = 200.0

WORKER = """
import asyncio, sys
from pathlib import Path
from agent_orchestrator.runs.loop.start import start_loop
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.loop.options import LoopOptions, prepare
from agent_orchestrator.runs.start import Start
from agent_orchestrator.engine.engine import Engine, Silent
from agent_orchestrator.systems.loop.system import LOOP

repo, script, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
orchestrator = Orchestrator(repo)
options = LoopOptions(task="one of many", until="test -f ../go", rehearse=script, max_iterations=1000)
started = [start_loop(orchestrator, prepare(options, Path(repo)).spec, Start(force=True, shared=True)) for _ in range(count)]

async def drive():
    engine = Engine(orchestrator.world(started[0].run), Silent())
    await asyncio.gather(*(engine.drive(one.run, LOOP, lambda driver: True) for one in started))

asyncio.run(drive())
for one in started:
    one.owner.release()
orchestrator.overviews().write(LOOP, Path(repo))
"""


class Reader:
    """Reads the registry all the time, as a tool with no manners would."""

    def __init__(self, path: Path) -> None:
        self._path, self._over = path, threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.most = 0
        self.faults: list[str] = []

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(0.02):
            try:
                content = self._path.read_text()
            except FileNotFoundError:
                continue
            try:
                self.most = max(self.most, len(json.loads(content)["active_loops"]))
            except (ValueError, KeyError) as error:
                self.faults.append(f"{error}: {content[:100]}")


def test_two_hundred_loops_with_force_never_tear_or_lose_a_line_of_the_registry(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    script = tmp_path / "script.yaml"
    script.write_text("- {takes: 6s, write: {n: more}}\n")
    registry = repo / ".aiwg" / "ralph" / "registry.json"
    command = [sys.executable, "-c", WORKER, str(repo), str(script), str(LOOPS_EACH)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with Reader(registry) as reader:
        workers = [subprocess.Popen(command, env=environment) for _ in range(PROCESSES)]
        try:
            wanted = PROCESSES * LOOPS_EACH
            deadline = time.monotonic() + PATIENCE_S
            while True:
                known = json.loads(registry.read_text())["active_loops"] if registry.exists() else []
                if len(known) == wanted and all(one["iteration"] >= 1 and one["pid"] for one in known):
                    break
                assert time.monotonic() < deadline, f"{len(known)} of {wanted} loops"
                assert all(worker.poll() is None for worker in workers)
                time.sleep(0.1)
            (tmp_path / "go").touch()
            assert [worker.wait(PATIENCE_S) for worker in workers] == [0] * PROCESSES
        finally:
            for worker in workers:
                worker.kill()
    assert reader.faults == []
    assert reader.most == wanted
    assert json.loads(registry.read_text())["active_loops"] == []
    states = [json.loads(path.read_text()) for path in (repo / ".aiwg" / "ralph" / "loops").glob("*/state.json")]
    assert [state["status"] for state in states] == ["completed"] * wanted
