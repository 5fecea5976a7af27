"""Durable events per second on one engine with 1 to 1,000 runs, against bare commits per second."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS
from benchmarks.measure import Curve, Figure, Plot, of_rounds

RUNS = {1: 1_000, 10: 200, 100: 50, 1_000: 20}
"""Runs at once, and the steps of each."""
TARGET = 12.0
WHY = "one engine is one thread: what is left after the shared commit is Python, some 130 calls per step of which none stands out"


def measure(bench: Bench) -> Iterator[Figure]:
    """Runs share their commits: the more there are, the cheaper is each fact."""
    ratios: dict[int, list[float]] = {}
    for number in bench.rounds(most=7):
        with bench.opened([FLOOR, OURS], f"-{number}") as subjects:
            floor = subjects[FLOOR.name]
            floor.ask("steps", count=bench.size(300))
            for runs, steps in RUNS.items():
                before = floor.ask("steps", count=bench.size(300))
                rate = subjects[OURS.name].ask("many", runs=bench.size(runs, 1), steps=bench.size(steps, 10))
                after = floor.ask("steps", count=bench.size(300))
                ratios.setdefault(runs, []).append(rate * statistics.median(before + after))
    for runs, known in ratios.items():
        last = runs == max(RUNS)
        named = f"{runs:,} {'runs' if runs > 1 else 'run'} at once: durable events per second / bare commits per second"
        yield of_rounds(named, known, at_least=True, target=TARGET if last else None, why=WHY)
    points = [(float(runs), statistics.median(known)) for runs, known in ratios.items()]
    curves = [Curve(name=OURS.title, points=points), Curve(name=FLOOR.title, points=[(float(runs), 1.0) for runs in ratios])]
    yield Plot(
        name="many", title="Durable events with many runs at once", x="runs at once", y="× bare commits per second", curves=curves
    )
