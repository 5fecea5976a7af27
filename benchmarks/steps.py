"""The cost of a durable step: alone, after many, among many runs. Publishing is on, as always."""

from __future__ import annotations

import itertools
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bare import BareJournal
from benchmarks.measure import Measure, of_rounds
from benchmarks.rig import Rig, chain

ROUNDS = 11


def _gaps(at_s: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(at_s)]


def step_cost(folder: Path) -> Iterator[Measure]:
    """A step in a chain against a bare commit, interleaved."""
    ratios = []
    bare = BareJournal(folder)
    rig = Rig(folder / "repo")
    for number in range(ROUNDS):
        before = bare.commits(300)
        noting = rig.drive(rig.create(f"run{number}", chain(400, rig.prompt)))
        after = bare.commits(300)
        ratios.append(statistics.median(_gaps(noting.at_s)[50:]) / statistics.median(before + after))
    rig.close()
    bare.close()
    yield of_rounds("durable step in a chain / bare SQLite FULL commit (p50)", ratios, 1.8)


def growth(folder: Path) -> Iterator[Measure]:
    """The same chain early and late."""
    ratios = []
    for number in range(ROUNDS):
        rig = Rig(folder / f"repo{number}")
        gaps = _gaps(rig.drive(rig.create("long", chain(10_000, rig.prompt))).at_s)
        ratios.append(statistics.median(gaps[9_000:10_000]) / statistics.median(gaps[1_000:2_000]))
        rig.close()
    yield of_rounds("step after 9,000 earlier ones / after 1,000 (p50)", ratios, 1.15)


def fsyncs(folder: Path) -> Iterator[Measure]:
    """Counted by strace over a whole run of 2,000 steps."""
    steps = 2_000
    program = (
        "from pathlib import Path; from benchmarks.rig import Rig, chain; "
        f"rig = Rig(Path({str(folder)!r}) / 'repo'); rig.drive(rig.create('traced', chain({steps}, rig.prompt)))"
    )
    summary = folder / "strace.txt"
    command = ["strace", "-f", "-c", "-o", str(summary), "-e", "trace=fsync,fdatasync", sys.executable, "-c", program]
    subprocess.run(command, check=True)
    counted = sum(int(line.split()[3]) for line in summary.read_text().splitlines() if re.search(r"\bf(data)?sync$", line))
    yield Measure(name="fsyncs per step of a chain (strace)", value=counted / steps, bound=1.05, unit="", note=f"{steps} steps")


def many_runs(folder: Path) -> Iterator[Measure]:
    """1,000 runs on one engine: events per second, while all of them are at work, against bare commits per second."""
    ratios = []
    bare = BareJournal(folder)
    for number in range(ROUNDS):
        before = bare.commits(500)
        rig = Rig(folder / f"repo{number}")
        noting = rig.drive(*[rig.create(f"run{n}", chain(20, rig.prompt)) for n in range(1_000)])
        rig.close()
        after = bare.commits(500)
        ratios.append(noting.rate(0.1, 0.9) * statistics.median(before + after))
    bare.close()
    yield of_rounds("1,000 concurrent runs, events/s / bare commits/s", ratios, 7.0, at_least=True)
