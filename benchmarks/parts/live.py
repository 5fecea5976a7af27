"""Many living agents under one engine, silent and printing: memory, processor, stalls, and how soon an end is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.bench import Bench
from benchmarks.entrants import Entrant
from benchmarks.measure import Curve, Figure, Plot, Row

COUNTS = (100, 500, 1_000)
SETTLE_S, QUIET_S = 6.0, 8.0
ALONE_SETTLE_S, ALONE_QUIET_S = 3.0, 4.0
MEMORY_TARGET_MB, CORE_TARGET_PERCENT, DELAY_TARGET_MS, STALL_TARGET_MS = 150.0, 15.0, 50.0, 50.0
ENGINE = Entrant(name="live", title="orc", module="benchmarks.live")
WHY = {
    "core": "every look at a growing output is a stat, and its events are read",
    "memory": "each launch keeps a watcher, a timer and its part of the state",
    "delay": "each end goes through the process table for what it left behind: more of it the more processes there are",
    "start": "whoever waits for the loop waits for up to three turns of it, each a tick of 100 facts and a slice of starts; a "
    "start waits for files and for a processor, which the agents that start want, too",
    "stall": "a slice of work was longer than it should be, or the machine was busy elsewhere",
}


def measure(bench: Bench) -> Iterator[Figure]:
    """Each count, silent and printing 1 MB a minute each, in a fresh engine; without peers only the hardest of it."""
    shown: dict[tuple[bool, int], dict[str, Any]] = {}
    counts, kinds = (COUNTS, (False, True)) if bench.peers else (COUNTS[-1:], (True,))
    settle_s, quiet_s = (SETTLE_S, QUIET_S) if bench.peers else (ALONE_SETTLE_S, ALONE_QUIET_S)
    for count in counts:
        for chatty in kinds:
            agents = bench.size(count, 3)
            label = f"{count:,} {'printing' if chatty else 'silent'} agents"
            folder = bench.folder / f"{count}-{chatty}"
            with ENGINE.start(folder) as subject:
                subject.ask("open", folder=str(folder))
                times = {"settle_s": settle_s * min(1, bench.scale), "quiet_s": max(0.2, quiet_s * min(1, bench.scale))}
                figures = subject.ask("live", agents=agents, chatty=chatty, **times)
            shown[chatty, count] = figures
            bench.say(f"{label}: started in {figures['start_s']:.1f} s")
            yield from _rows(label, figures, judged=count == COUNTS[-1])
    for name, title, unit in (
        ("memory_mb", "Memory of the engine", "MB"),
        ("core_percent", "Processor time of the engine", "% of a core"),
    ):
        curves = [
            Curve(
                name="printing 1 MB a minute each" if chatty else "silent",
                points=[(count, max(0.01, shown[chatty, count][name])) for count in counts],
            )
            for chatty in kinds
        ]
        if len(counts) > 1:
            yield Plot(
                name=f"live-{name.partition('_')[0]}",
                title=f"{title} with living agents",
                x="living agents",
                y=unit,
                curves=curves,
            )


def _rows(label: str, figures: dict[str, Any], *, judged: bool) -> Iterator[Row]:
    delays = figures["delays_ms"]
    p99 = delays[min(len(delays) - 1, int(len(delays) * 0.99))]

    def row(what: str, value: float, unit: str, target: float, why: str, note: str = "") -> Row:
        return Row(what=f"{label}: {what}", value=value, unit=unit, target=target if judged else None, why=WHY[why], note=note)

    yield row("memory of the engine", figures["memory_mb"], "MB", MEMORY_TARGET_MB, "memory")
    yield row("processor time of the engine", figures["core_percent"], "% of a core", CORE_TARGET_PERCENT, "core")
    note = f"median {delays[len(delays) // 2]:.1f} ms; ends are 10 ms apart"
    yield row("an end is noticed and journaled after (p99)", p99, "ms", DELAY_TARGET_MS, "delay", note)
    for what, stall, why in (
        ("longest stall of the loop while they start", "start_stall_ms", "start"),
        ("longest stall while they live", "quiet_stall_ms", "stall"),
        ("longest stall while they end", "end_stall_ms", "stall"),
    ):
        took_ms, worked_ms = figures[stall]
        yield row(what, took_ms, "ms", STALL_TARGET_MS, why, f"{worked_ms:.0f} ms of it the loop's own work")
