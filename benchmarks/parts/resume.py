"""The time to take a long run up again: the fold against a bare read, and a whole process against the peers'."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS, Entrant
from benchmarks.measure import Figure, Plot, bar_of, not_measured, of_rounds

EARLIER = 10_000
FOLDS = 5
PRINTED = ".agents/runs"
FOLD_TARGET, PEER_TARGET = 1.8, 1.0
WHY_FOLD = "a state of 10,000 steps is decoded, its graph built, and the rows after the snapshot are applied"
WHY_PEER = "starting and importing is most of it, half of that the interpreter, asyncio and msgspec; the state itself is a fifth"


def measure(bench: Bench) -> Iterator[Figure]:
    """Break off inside step 10,001; then, in a fresh process, go on until the next step begins."""
    racing = [entrant for entrant in bench.entrants() if entrant.resumes]
    kept = {}
    for entrant in racing:
        with bench.excused(entrant):
            kept[entrant.name] = _break_off(bench, entrant)
            bench.say(f"{entrant.title}: broken off")
    taken: dict[str, list[float]] = {}
    folds: list[float] = []
    for _ in bench.rounds(most=7):
        for entrant in racing:
            if entrant.name in kept and entrant.name not in bench.failures:
                with bench.excused(entrant):
                    taken.setdefault(entrant.name, []).append(_resume_s(bench, entrant, kept[entrant.name]))
        folds += _fold(bench, kept[OURS.name])
    yield of_rounds(f"orc: fold of {EARLIER:,} steps / bare typed read", folds, target=FOLD_TARGET, why=WHY_FOLD)
    ours = taken[OURS.name]
    rows = {OURS.name: of_rounds("orc: process start to the next step", [1000 * s for s in ours], unit="ms")}
    yield rows[OURS.name]
    theirs = [entrant for entrant in racing if entrant.environment and entrant.name not in bench.failures]
    for entrant in (FLOOR, *theirs):
        note = f"{entrant.aside}{'its state holds the earlier steps at once' if entrant.seeded else ''}"
        if entrant is FLOOR:
            note = "reads and decodes every row, and does nothing with them"
        rows[entrant.name] = of_rounds(
            f"{entrant.title}: the same", [1000 * s for s in taken[entrant.name]], unit="ms", note=note
        )
        yield rows[entrant.name]
    for entrant in bench.entrants():
        if not entrant.resumes:
            yield not_measured(
                f"{entrant.title}: the same", "it runs a flow anew and skips tasks by cached results; it does not go on in it"
            )
    yield from (not_measured(f"{entrant.title}: the same", why) for entrant, why in bench.absent())
    if theirs:
        best = [min(others) / mine for mine, *others in zip(ours, *(taken[one.name] for one in theirs), strict=False)]
        yield of_rounds("the fastest peer / orc, in the same round", best, target=PEER_TARGET, at_least=True, why=WHY_PEER)
    bars = [bar_of(entrant.title, rows[entrant.name], ours=entrant is OURS) for entrant in (OURS, FLOOR, *theirs)]
    yield Plot(name="resume", title=f"From process start to the next step, after {EARLIER:,} steps", y="ms", bars=bars)


def _break_off(bench: Bench, entrant: Entrant) -> Path:
    folder = bench.folder / entrant.name
    with entrant.start(folder) as subject:
        subject.ask("open", folder=str(folder))
        subject.interrupt(earlier=bench.size(EARLIER, 10))
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept)
    # A copied state file would be taken for one that somebody edited; one that is missing is printed anew.
    shutil.rmtree(kept / PRINTED, ignore_errors=True)
    return kept


def _restore(bench: Bench, entrant: Entrant, kept: Path) -> Path:
    folder = bench.folder / entrant.name
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    return folder


def _resume_s(bench: Bench, entrant: Entrant, kept: Path) -> float:
    folder = _restore(bench, entrant, kept)
    began_ns = time.time_ns()
    with entrant.start(folder) as subject:
        return float(subject.ask("resume", folder=str(folder)) - began_ns) / 1e9


def _fold(bench: Bench, kept: Path) -> list[float]:
    folder = _restore(bench, OURS, kept)
    with OURS.start(folder) as subject:
        subject.ask("open", folder=str(folder))
        pairs = [subject.ask("loads") for _ in range(FOLDS)]
    return [ours_s / bare_s for ours_s, bare_s in pairs]
