"""The growth of each way to work: the cost of an event in the last tenth of a large run against the first tenth."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmarks.bench import Bench
from benchmarks.entrants import Entrant
from benchmarks.measure import Bar, Figure, Plot, Row, bar_of, of_rounds

TARGET = 1.3
PATIENCE = 4
"""A run that takes so many times its share of the time is stopped; on a slow machine the first one may take longer than that."""
PROGRAM = Entrant(name="systems", title="orc", module="benchmarks.systems")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A large run."""

    kind: str
    label: str
    count: int
    alone: int
    """The size where only ours is measured, in little time."""
    least: int = 20
    share: float = 1.0
    """Its share of the part's time, in parts."""


CASES = (
    Case(kind="chain", label="workflow of 10,000 steps in a row", count=10_000, alone=2_000),
    Case(kind="wide", label="workflow of 2,000 steps at once", count=2_000, alone=2_000, share=0.5),
    Case(kind="items", label="step of 100,000 items", count=100_000, alone=3_000, share=4),
    Case(kind="loop", label="loop of 1,000 iterations", count=1_000, alone=60, least=5, share=2),
    Case(kind="phases", label="phases of 500 tasks", count=500, alone=20, least=4, share=4),
    Case(kind="team", label="team of 50 groups", count=50, alone=8, least=3, share=3),
    Case(kind="swarm", label="swarm of 10,000 beads", count=10_000, alone=600, share=3),
)
WHY = "some of what an event does grows with what came before it"


def measure(bench: Bench) -> Iterator[Figure]:
    """Each case, as often as its share of the time allows; one that does not end in its time is stopped and said so."""
    bars: list[Bar] = []
    left = sum(case.share for case in CASES)
    for case in CASES:
        share_s = bench.left_s * case.share / left
        left -= case.share
        row = _measure_case(bench, case, max(share_s, 3.0))
        bars.append(bar_of(case.label, row, ours=row.verdict == "met"))
        yield row
    title = "The last tenth of a large run against its first tenth"
    yield Plot(name="systems", title=title, y="cost of an event, last / first tenth", bars=bars, target=TARGET)


def _measure_case(bench: Bench, case: Case, limit_s: float) -> Row:
    ratios: list[float] = []
    notes: list[str] = []
    broken, used_s, why = False, 0.0, WHY
    count = bench.size(case.count if bench.peers else case.alone, case.least)
    while len(ratios) < min(3, bench.most_rounds) and (not ratios or used_s + used_s / len(ratios) < limit_s):
        folder = bench.folder / f"{case.kind}-{len(ratios)}"
        with PROGRAM.start(folder) as subject:
            given = {"kind": case.kind, "count": count, "limit_s": PATIENCE * limit_s}
            figures = subject.ask("run", patience_s=PATIENCE * limit_s + 120, folder=str(folder), **given)
        used_s += figures["took_s"]
        ratios.append(figures["last_s"] / figures["first_s"])
        if not figures["finished"]:
            broken, why = True, "it did not end in the time that it has here"
            notes = [f"stopped after {figures['took_s']:.0f} s and {figures['events']:,} events"]
            break
        notes = [f"{figures['events']:,} events in {figures['took_s']:.1f} s, {figures['status']}"]
    if count != case.count:
        notes.insert(0, f"{count:,} of them")
    bench.say(f"{case.label}: {ratios[-1]:.2f}, {notes[-1]}")
    return of_rounds(
        f"{case.label}: an event of the last tenth / of the first",
        ratios,
        target=TARGET,
        why=why,
        note="; ".join(notes),
        broken=broken,
    )
