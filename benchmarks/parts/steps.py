"""The cost of a durable step in a chain: ours, the floor and the peers in turn; and how it grows with a run's history."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS, Entrant
from benchmarks.measure import Curve, Figure, Plot, bar_of, not_measured, of_rounds
from benchmarks.subject import Subject

STEPS, WARM, FLOOR_STEPS = 300, 300, 150
EARLIER = (100, 1_000, 10_000)
WINDOW = 200
PEER_ROUNDS = 2
RUN_LIMIT_S = 90.0
"""A run that would take longer than this is not made; the row says after how many steps it was."""

STEP_TARGET, BEST_TARGET, GROWTH_TARGET = 1.5, 2.5, 1.05
WHY_STEP = "a step is an agent's end decided, its successor started and both journaled: the part above the commit is Python"
WHY_GROWTH = "the last steps share the collector, the caches and the print-outs with all the earlier ones"


def measure_steps(bench: Bench) -> Iterator[Figure]:
    """A step against a bare commit, the floor before and after every entrant."""
    entrants = bench.entrants()
    ratios: dict[str, list[float]] = {}
    with bench.opened(entrants) as subjects:
        for entrant in entrants:
            with bench.excused(entrant):
                _ask_steps(bench, subjects, entrant, WARM)
        for number in bench.rounds():
            racing = [one for one in bench.entrants()[1:] if one.name in subjects]
            turn = number % len(racing)
            for entrant in (*racing[turn:], *racing[:turn]):
                with bench.excused(entrant):
                    before = _floor(bench, subjects)
                    cost_s = statistics.median(_ask_steps(bench, subjects, entrant, STEPS))
                    ratios.setdefault(entrant.name, []).append(cost_s / statistics.median(before + _floor(bench, subjects)))
    ours = ratios[OURS.name]
    named = "a durable step in a chain / a bare commit (p50)"
    row = of_rounds(f"orc: {named}", ours, target=STEP_TARGET, why=WHY_STEP)
    yield row
    bars = [bar_of(OURS.title, row, ours=True)]
    for entrant in bench.entrants()[2:]:
        row = of_rounds(f"{entrant.title}: the same", ratios[entrant.name], note=entrant.aside)
        yield row
        bars.append(bar_of(entrant.title + ("" if entrant.durable else " *"), row))
    yield from (not_measured(f"{entrant.title}: the same", why) for entrant, why in bench.absent())
    durable = [ratios[entrant.name] for entrant in bench.entrants()[2:] if entrant.durable]
    if durable:
        best = [min(theirs) / mine for mine, *theirs in zip(ours, *durable, strict=False)]
        yield of_rounds("the cheapest durable peer / orc, in the same round", best, target=BEST_TARGET, at_least=True)
    yield Plot(
        name="steps", title="A durable step, in bare SQLite commits", y="× a bare commit (p50)", bars=bars, target=STEP_TARGET
    )


def _floor(bench: Bench, subjects: dict[str, Subject]) -> list[float]:
    return _ask_steps(bench, subjects, FLOOR, FLOOR_STEPS)


def _ask_steps(bench: Bench, subjects: dict[str, Subject], entrant: Entrant, count: int, earlier: int = 0) -> list[float]:
    answer: Any = subjects[entrant.name].ask("steps", count=bench.size(round(count * entrant.pace), 5), earlier=earlier)
    return list(answer)


def measure_growth(bench: Bench) -> Iterator[Figure]:
    """The same step after 100, 1,000 and 10,000 earlier ones of its run."""
    costs: dict[str, dict[int, list[float]]] = {}
    for number in bench.rounds(least=2, most=7):
        racing = bench.entrants() if number < PEER_ROUNDS else [FLOOR, OURS]
        with bench.opened(racing, f"-{number}") as subjects:
            for entrant in racing:
                with bench.excused(entrant):
                    _ask_steps(bench, subjects, entrant, WARM)
                    cost_s = 0.0
                    for earlier in EARLIER:
                        if earlier <= entrant.most_earlier and (entrant.seeded or cost_s * earlier < RUN_LIMIT_S):
                            taken = _ask_steps(bench, subjects, entrant, WINDOW, bench.size(earlier, 5))
                            cost_s = statistics.median(taken)
                            costs.setdefault(entrant.name, {}).setdefault(earlier, []).append(cost_s)
                bench.say(f"{entrant.title}: done")
    mine = costs[OURS.name]
    for late in sorted(mine)[1:]:
        ratios = [after / before for before, after in zip(mine[EARLIER[0]], mine[late], strict=False)]
        named = f"orc: a step after {late:,} earlier ones / after {EARLIER[0]} (p50)"
        yield of_rounds(named, ratios, target=GROWTH_TARGET, why=WHY_GROWTH)
    for entrant in [FLOOR, *bench.entrants()[2:]]:
        known = costs[entrant.name]
        late = max(known)
        ratios = [after / before for before, after in zip(known[EARLIER[0]], known[late], strict=False)]
        notes = [entrant.aside, "the earlier steps are put into its state at once" if entrant.seeded else ""]
        named = f"{entrant.title}: after {late:,} / after {EARLIER[0]}"
        yield of_rounds(named, ratios, note="; ".join(filter(None, notes)))
    yield from (not_measured(f"{entrant.title}: growth", why) for entrant, why in bench.absent())
    curves = [
        Curve(
            name=entrant.title,
            points=[(earlier, 1000 * statistics.median(taken)) for earlier, taken in costs[entrant.name].items()],
        )
        for entrant in (OURS, FLOOR, *bench.entrants()[2:])
    ]
    yield Plot(name="growth", title="A step after many others of its run", x="earlier steps", y="ms a step (p50)", curves=curves)
