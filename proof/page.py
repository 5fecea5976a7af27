"""Writes the table of a record into the page about durability, between two marks, and beside it as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter

from agent_orchestrator.version import __version__
from proof.kinds import KINDS
from proof.record import ROOT, Record
from proof.table import Table

PAGE = ROOT / "docs" / "durability.md"
NUMBERS = ROOT / "docs" / "durability.json"
BEGIN, END = "<!-- proof: begin -->", "<!-- proof: end -->"


def write_page(record: Record, *, add: bool = False) -> int:
    """Write both, of the record alone or added to what they have; return 1 when something is broken."""
    table = Table()
    days: set[str] = set()
    commits: Counter[str] = Counter()
    if add:
        had = json.loads(NUMBERS.read_text("utf-8"))
        table.take(had)
        days.update(had["days"])
        commits.update(had["commits"])
    for line in record.lines():
        table.add(line.outcome())
        days.add(line.day)
        commits[line.commit] += 1
    text = PAGE.read_text("utf-8")
    made = "\n".join((BEGIN, *describe(table, days), END))
    written, count = re.subn(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: made, text, flags=re.DOTALL)
    assert count == 1, f"{PAGE} has no place for the table: a line {BEGIN} and a line {END}"
    PAGE.write_text(written, "utf-8")
    NUMBERS.write_text(json.dumps(numbers(table, days, commits), indent=2) + "\n", "utf-8")
    print("\n".join(table.lines()))
    return 1 if table.faults else 0


def describe(table: Table, days: set[str]) -> list[str]:
    """Return the lines of the page: when and with what, the table, and each trial that broke something."""
    when = " to ".join(sorted({min(days), max(days)}))
    count = sum(table.trials.values())
    lines = [f"{when}, agent-orchestrator {__version__}: {count:,} trials, {len(table.faults)} violations.", "", *table.lines()]
    if table.faults:
        lines += ["", *(f"- broken: `python -m proof --repeat '{one.trial.name}'`" for one in table.faults)]
    return lines


def numbers(table: Table, days: set[str], commits: dict[str, int]) -> dict[str, object]:
    """Return the same for programs, and the commits that were played with, by trials."""
    return {
        "days": sorted(days),
        "commits": commits,
        "tried": [
            {"kind": kind, "system": system, "unit": KINDS[kind].unit, "tried": count}
            for (kind, system), count in sorted(table.tried.items())
        ],
        "trials": dict(sorted(table.trials.items())),
        "violations": [{"trial": one.trial.name, "fault": one.fault} for one in table.faults],
    }
