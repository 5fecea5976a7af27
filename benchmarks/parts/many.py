"""Durable events per second with 1 to 1,000 runs, on one engine and on one for each processor, against bare commits."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS
from benchmarks.measure import Curve, Figure, Plot, of_rounds
from benchmarks.subject import Subject

RUNS = {1: 1_000, 10: 200, 100: 50, 1_000: 20}
"""Runs at once, and the steps of each."""
ENGINES = min(4, os.cpu_count() or 1)
"""Processes that drive runs of one store side by side, as every `orc run` is one."""
TARGET = 12.0
WHY = "one engine is one thread: what is left after the shared commit is Python, some 130 calls per step of which none stands out"
WHY_ENGINES = "each engine is one thread of Python, and they take turns at the store; the quicker the disk, the more that counts"


def events_per_s(engines: Sequence[Subject], runs: int, steps: int) -> float:
    """Drive runs in one store, the same number on each engine, all at once; return durable events per second of all together."""
    with ThreadPoolExecutor(len(engines)) as threads:
        list(threads.map(lambda engine: engine.ask("store_many", runs=max(1, runs // len(engines)), steps=steps), engines))
        middles = list(threads.map(lambda engine: engine.ask("drive_many"), engines))
    begin, end = min(middle[0] for middle in middles), max(middle[1] for middle in middles)
    return float(sum(middle[2] for middle in middles) / (end - begin))


def measure(bench: Bench) -> Iterator[Figure]:
    """Runs share their commits: the more there are, the cheaper is each fact."""
    ratios: dict[int, list[float]] = {}
    together: list[float] = []
    for number in bench.rounds(most=7):
        with bench.opened([FLOOR, OURS], f"-{number}") as subjects:
            floor, first = subjects[FLOOR.name], subjects[OURS.name]
            floor.ask("steps", count=bench.size(300))
            for runs in RUNS:
                ratios.setdefault(runs, []).append(_compare(bench, floor, [first], runs))
            if ENGINES > 1:
                with contextlib.ExitStack() as stack:
                    others = [stack.enter_context(OURS.start(first.folder)) for _ in range(1, ENGINES)]
                    for other in others:
                        other.ask("open", folder=str(first.folder))
                    together.append(_compare(bench, floor, [first, *others], max(RUNS)))
    rates = "durable events per second / bare commits per second"
    for runs, known in ratios.items():
        last = runs == max(RUNS)
        named = f"{runs:,} {'runs' if runs > 1 else 'run'} at once: {rates}"
        yield of_rounds(named, known, at_least=True, target=TARGET if last else None, why=WHY)
    if together:
        named = f"{max(RUNS):,} runs at once on {ENGINES} engines, one for each processor: {rates}"
        yield of_rounds(named, together, at_least=True, target=TARGET, why=WHY_ENGINES)
    points = [(float(runs), statistics.median(known)) for runs, known in ratios.items()]
    curves = [Curve(name=OURS.title, points=points), Curve(name=FLOOR.title, points=[(float(runs), 1.0) for runs in ratios])]
    yield Plot(
        name="many", title="Durable events with many runs at once", x="runs at once", y="× bare commits per second", curves=curves
    )


def _compare(bench: Bench, floor: Subject, engines: Sequence[Subject], runs: int) -> float:
    """Return how many times as many events a second that is as the floor, before and after, has commits."""
    before = floor.ask("steps", count=bench.size(300))
    rate = events_per_s(engines, bench.size(runs, len(engines)), bench.size(RUNS[runs], 10))
    after = floor.ask("steps", count=bench.size(300))
    return rate * float(statistics.median(before + after))
