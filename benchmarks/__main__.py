"""`make bench`: every measure, its target, and whether it was met. What is missed is printed as missed.

Ratios are medians of interleaved rounds; the bare program of a pair runs right before and after what it is compared with.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import agents, analysis, commands, journal, steps
from benchmarks.measure import Measure

MEASURES: dict[str, Callable[[Path], Iterator[Measure]]] = {
    "step": steps.step_cost,
    "growth": steps.growth,
    "fsyncs": steps.fsyncs,
    "many": steps.many_runs,
    "load": journal.cold_load,
    "handover": agents.handover,
    "thousand": agents.thousand_quiet,
    "commands": commands.latency,
    "report": analysis.report,
    "report-memory": analysis.memory,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        print(f"no such measure: {', '.join(unknown)}; there are: {', '.join(MEASURES)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or MEASURES:
        with tempfile.TemporaryDirectory(prefix="orc-bench-") as folder:
            for measure in MEASURES[name](Path(folder)):
                print(measure.line(), flush=True)
                missed += not measure.met
    print(f"\n{missed} missed" if missed else "\nall met")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
