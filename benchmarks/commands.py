"""The start-up time of the command line, against an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Measure, of_rounds
from benchmarks.rig import Rig, chain

ROUNDS = 15


def latency(folder: Path) -> Iterator[Measure]:
    """`orc --help`, and `orc status` with 1,000 runs stored."""
    rig = Rig(folder / "repo")
    for number in range(1_000):
        rig.create(f"run{number}", chain(5, rig.prompt))
    rig.close()
    orc = str(Path(sys.executable).with_name("orc"))
    status, usage = [], []
    for _ in range(ROUNDS):
        bare = min(_run([sys.executable, "-c", "pass"]) for _ in range(2))
        usage.append(_run([orc, "--help"]) / bare)
        status.append(_run([orc, "status", "--repo", str(folder / "repo")]) / bare)
    yield of_rounds("orc --help / python -c pass", usage, 8.0)
    yield of_rounds("orc status, 1,000 runs stored / python -c pass", status, 12.0)


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
