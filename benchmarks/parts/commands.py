"""The time of commands that look, with 1 to 10,000 runs stored, against an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.entrants import OURS
from benchmarks.measure import Curve, Figure, Plot, of_rounds

STORED = (1, 1_000, 10_000)
STEPS = 3
START_TARGET, SAME_TARGET = 8.0, 1.1
WHY_START = "the interpreter starts once for both; the rest is our imports and opening the store"
WHY_SAME = "the command reads more than what it shows"
COMMANDS = {
    "orc status": ("status", "--repo"),
    "orc list": ("list", "--repo"),
    "orc report": ("report", "--repo"),
}
TARGETS = ("orc status", "orc report", "orc run --help")
MANY = 1_000
"""Runs of a repository that is used a lot: commands have their target up to here."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Each command at each size, in turn, between two bare interpreters."""
    folders, sizes = {}, STORED if bench.peers else STORED[:-1]
    for stored in sizes:
        folder = bench.folder / str(stored)
        with OURS.start(folder) as subject:
            subject.ask("open", folder=str(folder))
            subject.ask("fill", runs=bench.size(stored, 1), steps=STEPS)
        folders[stored] = folder
        bench.say(f"{stored:,} runs stored")
    ratios: dict[tuple[str, int], list[float]] = {}
    orc = str(Path(sys.executable).with_name("orc"))
    for _ in bench.rounds(least=5 if bench.peers else 3, most=15):
        bare_s = min(_run_s([sys.executable, "-c", "pass"]) for _ in range(3))
        ratios.setdefault(("orc run --help", 0), []).append(_run_s([orc, "run", "--help"]) / bare_s)
        for stored, folder in folders.items():
            for name, arguments in COMMANDS.items():
                ratios.setdefault((name, stored), []).append(_run_s([orc, *arguments, str(folder)]) / bare_s)
    for (name, stored), known in ratios.items():
        target = START_TARGET if name in TARGETS and stored <= MANY else None
        place = f" with {stored:,} {'runs' if stored > 1 else 'run'} stored" if stored else ""
        yield of_rounds(f"`{name}`{place} / `python -c pass`", known, target=target, why=WHY_START)
    least, most = sizes[0], sizes[-1]
    for name in COMMANDS:
        same = [after / before for before, after in zip(ratios[name, least], ratios[name, most], strict=True)]
        target = SAME_TARGET if name == "orc status" else None
        yield of_rounds(f"`{name}` with {most:,} runs stored / with {least}", same, target=target, why=WHY_SAME)
    curves = [
        Curve(name=name, points=[(float(stored), statistics.median(ratios[name, stored])) for stored in sizes])
        for name in COMMANDS
    ]
    title = "Commands with many runs stored"
    yield Plot(name="commands", title=title, x="stored runs", y="× python -c pass", curves=curves, target=START_TARGET)


def _run_s(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
