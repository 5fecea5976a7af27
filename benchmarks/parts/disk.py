"""The disk's share: bytes that steps leave behind, and how often the disk is waited for."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import apsw

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS, Entrant
from benchmarks.measure import Figure, Plot, Row, bar_of, not_measured, of_rounds

STEPS = 1_000
FEW, MANY = 200, 1_200
SYNC_TARGET, PEER_TARGET = 1.02, 1.0
SYNCS = "trace=fsync,fdatasync,sync_file_range,msync"
WHY_SYNCS = "besides the commits, print-outs are synced and the log is checkpointed"
PRINTED = ".agents/runs"
WHY_STORE = "a row of the journal has the facts of an agent's end and of the next one's start; a peer's has a result"
WHY_BYTES = "0.38 MB of it is the state file that people read, indented by two as seed 000 asks; the peers write none"


def measure_bytes(bench: Bench) -> Iterator[Figure]:
    """The size of the folder after 1,000 steps, less what it is after one: whatever is made once counts for nobody."""
    sizes: dict[str, list[float]] = {}
    stores: list[float] = []
    for number in bench.rounds(least=1, most=3):
        for entrant in bench.entrants():
            with bench.excused(entrant):
                steps = bench.size(round(STEPS * (1 if entrant.seeded else entrant.pace)), 5)
                before, after = (_used_bytes(bench, entrant, f"-{number}", count) for count in (1, 1 + steps))
                kept, printed = ((late - early) * STEPS / steps / 1e6 for early, late in zip(before, after, strict=True))
                sizes.setdefault(entrant.name, []).append(kept)
                if entrant is OURS:
                    stores.append(kept - printed)
    rows = {}
    for entrant in bench.entrants():
        rows[entrant.name] = of_rounds(f"{entrant.title}: kept on disk for {STEPS:,} steps", sizes[entrant.name], unit="MB")
        yield rows[entrant.name]
        if entrant is OURS:
            yield of_rounds(f"{entrant.title}: of it the store, without the state file", stores, unit="MB")
    yield from (not_measured(f"{entrant.title}: kept on disk", why) for entrant, why in bench.absent())
    yield from _compare(bench, sizes, "the smallest peer's bytes / orc's", WHY_BYTES)
    yield from _compare(bench, {**sizes, OURS.name: stores}, "the smallest peer's bytes / those of orc's store", WHY_STORE)
    yield _plot(bench, rows, "bytes", f"Kept on disk for {STEPS:,} steps", "MB")


def measure_syncs(bench: Bench) -> Iterator[Figure]:
    """Calls counted by strace: of a long run less those of a short one, so that setting up counts for nobody."""
    counts: dict[str, list[float]] = {}
    for entrant in bench.entrants():
        with bench.excused(entrant):
            few, many = (bench.size(round(steps * entrant.pace), 5) for steps in (FEW, MANY))
            counts[entrant.name] = [(_count_syncs(bench, entrant, many) - _count_syncs(bench, entrant, few)) / (many - few)]
            bench.say(f"{entrant.title}: {counts[entrant.name][0]:.3f}")
    rows = {}
    for entrant in bench.entrants():
        target = SYNC_TARGET if entrant is OURS else None
        named = f"{entrant.title}: fsyncs per step (strace)"
        note = entrant.aside
        rows[entrant.name] = of_rounds(named, counts[entrant.name], unit="", target=target, why=WHY_SYNCS, note=note)
        yield rows[entrant.name]
    yield from (not_measured(f"{entrant.title}: fsyncs per step", why) for entrant, why in bench.absent())
    yield from _compare(bench, counts, "the fewest fsyncs of a durable peer / orc's", WHY_SYNCS)
    yield _plot(bench, rows, "fsyncs", "Fsyncs per step", "fsyncs per step")


def _compare(bench: Bench, known: dict[str, list[float]], what: str, why: str) -> Iterator[Row]:
    theirs = [statistics.median(known[one.name]) for one in bench.entrants()[2:] if one.durable]
    if theirs:
        value = min(theirs) / statistics.median(known[OURS.name])
        yield Row(what=what, value=value, target=PEER_TARGET, at_least=True, why=why)


def _plot(bench: Bench, rows: dict[str, Row], name: str, title: str, unit: str) -> Plot:
    shown: list[Entrant] = [OURS, FLOOR, *bench.entrants()[2:]]
    bars = [bar_of(one.title + ("" if one.durable else " *"), rows[one.name], ours=one is OURS) for one in shown]
    return Plot(name=name, title=title, y=unit, bars=bars)


def _used_bytes(bench: Bench, entrant: Entrant, label: str, steps: int) -> tuple[int, int]:
    """Return the bytes that are left after some steps, when the program has closed what it wrote, and those of state files."""
    folder = bench.folder / f"{entrant.name}{label}-{steps}"
    with entrant.start(folder) as subject:
        subject.ask("open", folder=str(folder))
        subject.ask("steps", count=steps)
    for database in folder.rglob("*.db"):  # Not everybody closes theirs: a log that is still to be merged is no data.
        db = apsw.Connection(str(database))
        db.pragma("wal_checkpoint", "truncate")
        db.close()
    return _sum_bytes(folder), _sum_bytes(folder / PRINTED)


def _sum_bytes(folder: Path) -> int:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(512 * path.stat().st_blocks for path in found)


def _count_syncs(bench: Bench, entrant: Entrant, steps: int) -> int:
    folder = bench.folder / f"{entrant.name}-{steps}"
    counted = bench.folder / f"{entrant.name}-{steps}.strace"
    wrapped = ("strace", "-f", "--seccomp-bpf", "-c", "-o", str(counted), "-e", SYNCS)
    with entrant.start(folder, wrapped=wrapped) as subject:
        subject.ask("open", folder=str(folder))
        subject.ask("steps", count=steps)
    lines = counted.read_text().splitlines()
    return sum(int(line.split()[3]) for line in lines if re.search(r"\b(f(data)?sync|msync|sync_file_range)$", line))
