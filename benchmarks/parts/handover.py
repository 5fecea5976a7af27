"""From one agent to the next: agents are `true`, so that only the way between them costs anything."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS
from benchmarks.measure import Figure, of_rounds

AGENTS, COMMITS = 60, 100
TARGET = 1.3
WHY = (
    "between an end and the next start the end is found and judged, what it left is read, both are journaled, and a folder, a "
    "lock, a prompt and state files are written: about a millisecond of Python and files in some twenty pieces"
)
LOOP = 'cd "$1"; i=0; while [ $i -lt "$2" ]; do (exec /bin/true) >>out 2>>err </dev/null; i=$((i + 1)); done'


def measure(bench: Bench) -> Iterator[Figure]:
    """One agent's start to the next one's against a bare shim run and a commit, and against a loop in bash."""
    ratios, kept, loops = [], [], []
    count = bench.size(AGENTS, 5)
    with bench.opened([FLOOR, OURS]) as subjects:
        floor, folder = subjects[FLOOR.name], bench.folder / "shims"
        folder.mkdir()
        floor.ask("steps", count=bench.size(300))
        subjects[OURS.name].ask("handovers", count=count)

        def shims(*, keep: bool = False) -> float:
            return float(statistics.median(floor.ask("shims", folder=str(folder), count=count, keep=keep)))

        for _ in bench.rounds():
            commit_s = statistics.median(floor.ask("steps", count=bench.size(COMMITS)))
            before_s = shims()
            loop_s = _bash_s(folder, count)
            ours_s = statistics.median(subjects[OURS.name].ask("handovers", count=count))
            bare_s = commit_s + (before_s + shims()) / 2
            ratios.append(ours_s / bare_s)
            kept.append((commit_s + shims(keep=True)) / bare_s)
            loops.append(ours_s / ((loop_s + _bash_s(folder, count)) / 2))
    yield of_rounds("orc: agent to agent / a bare shim run and a bare commit (p50)", ratios, target=TARGET, why=WHY)
    yield of_rounds("a bare shim run that keeps the files of a launch, and a commit / the same", kept)
    yield of_rounds("orc: agent to agent / one turn of a bash loop", loops, note="the loop keeps nothing and commits nothing")


def _bash_s(folder: Path, count: int) -> float:
    began = time.perf_counter()
    subprocess.run(["bash", "-c", LOOP, "bash", str(folder), str(count)], check=True)
    return (time.perf_counter() - began) / count
