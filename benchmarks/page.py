"""The figures as people read them: a table in a terminal, and the measured part of docs/performance.md with its pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.plan import PARTS
from benchmarks.plot import draw
from benchmarks.results import PartResult, Results, elsewhere
from benchmarks.subject import ROOT

PAGE = ROOT / "docs" / "performance.md"
PICTURES = "pictures/performance"
BEARABLE = 3.0
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def lines_for_terminal(known: Results, names: list[str]) -> Iterator[str]:
    """Return the rows of some parts, one line each, and how many targets were missed."""
    missed = 0
    for name in names:
        part = known.parts[name]
        yield f"\n{PARTS[name].about}{f'  FAILED: {part.failed}' if part.failed else ''}"
        for row in part.rows:
            missed += row.verdict == "missed"
            verdict = row.verdict.upper() if row.verdict == "missed" else row.verdict
            told = f"{_value(row):>12}  {_spread(row):<22} {_target(row):<8} {verdict:<12} {row.what}"
            yield f"{told}  ({row.why})" if row.verdict in {"missed", "not measured"} and row.why else told
    yield f"\n{missed} missed" if missed else "\nall met"


def write(known: Results, source: Path) -> None:
    """Replace the measured part of the page, and its pictures."""
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{PAGE.name} has no line {BEGIN} and {END}"
    folder = PAGE.parent / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for part in known.parts.values():
        for plot in part.plots:
            (folder / f"{plot.name}.svg").write_text(draw(plot), "utf-8")
    PAGE.write_text(f"{before}{BEGIN}\n\n{make_text(known, source, elsewhere(known))}\n{END}{after}", "utf-8")


def make_text(known: Results, source: Path, others: Sequence[Results] = ()) -> str:
    """Return the measured part: the circumstances, a table and pictures per part, then the same on other machines."""
    machine = ", ".join(known.machine.values())
    versions = ", ".join(f"{name} {version}" for name, version in known.versions.items())
    kept = os.path.relpath(source, ROOT)
    verdicts = [row.verdict for part in known.parts.values() for row in part.rows]
    met, missed = verdicts.count("met"), verdicts.count("missed")
    lines = [
        f"Measured on {known.date} by `{known.command}`: {machine}. {versions}. The figures are kept in `{kept}`.",
        "",
        f"Of {met + missed} targets {met} were met and **{missed} missed**.",
    ]
    absent = [f"`{name}` ({PARTS[name].about.lower()})" for name in PARTS if name not in known.parts]
    if absent:
        lines += ["", f"Not measured on that day: {', '.join(absent)}."]
    busy = [name for name, part in known.parts.items() if part.load[0] > _bearable(known)]
    if busy:
        told = ", ".join(f"`{name}`" for name in busy)
        lines += [
            "",
            f"**The machine was busy with other work** during {told}: there, only what is counted (fsyncs, refusals) says",
        ]
        lines += [
            "anything. Times and their ratios show that the measurement runs, not how fast anything is, whatever the verdict."
        ]
    for name, part in known.parts.items():
        lines += ["", *_section(name, part, busy=name in busy)]
    if others:
        lines += ["", *_elsewhere([known, *others])]
    return "\n".join(lines) + "\n"


def _elsewhere(machines: Sequence[Results]) -> Iterator[str]:
    """Compare what was missed on one machine or another: a ratio to a commit says as much about a disk as about a program."""
    told = [{row.what: row for part in one.parts.values() for row in part.rows if row.target is not None} for one in machines]
    missed = [what for what, row in told[0].items() if any(one[what].verdict == "missed" for one in told if what in one)]
    yield "### The same on other machines"
    yield ""
    yield "Every target that was missed on one of them. Versions differ, too: each column is the newest of its machine."
    yield ""
    names = (f"{_cell(one.machine['processors'])}, {one.date}" for one in machines)
    yield f"| measured | target | {' | '.join(names)} |"
    yield f"|---|---|{'---:|' * len(machines)}"
    for what in missed:
        cells = [
            f"{_value(one[what])}{' **missed**' if one[what].verdict == 'missed' else ''}" if what in one else "" for one in told
        ]
        yield f"| {_cell(what)} | {_target(told[0][what])} | {' | '.join(cells)} |"


def _bearable(known: Results) -> float:
    """Return the load average up to which figures mean something: the measurements themselves make some."""
    return BEARABLE * int(known.machine["processors"].split()[0])


def _section(name: str, part: PartResult, *, busy: bool) -> Iterator[str]:
    yield f"### {PARTS[name].about}"
    yield ""
    scale = "" if part.scale == 1 else f", at {part.scale:g} of the size"
    load = f"{part.load[0]:g} before, {part.load[1]:g} after"
    rounds = "" if part.most_rounds is None else f" ROUNDS={part.most_rounds}"
    warned = " **The machine was busy with other work.**" if busy else ""
    yield f"`make bench ONLY={name}{rounds}`, {part.took_s:.0f} s{scale}; load average {load}.{warned}"
    if part.failed:
        yield ""
        yield f"**This part ended early**: {_cell(part.failed)}"
    if part.rows:
        yield ""
        yield "| measured | median | min–max (rounds) | target | |"
        yield "|---|---:|---|---|---|"
    for row in part.rows:
        verdict = "**missed**" if row.verdict == "missed" else row.verdict
        told = [row.note, row.why if row.verdict in {"missed", "not measured"} else ""]
        more = "; ".join(_cell(text) for text in told if text)
        last = f"{verdict}{': ' if verdict and more else ''}{more}"
        yield f"| {_cell(row.what)} | {_value(row)} | {_spread(row)} | {_target(row)} | {last} |"
    for plot in part.plots:
        yield ""
        yield f"![{plot.title}]({PICTURES}/{plot.name}.svg)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _value(row: Row) -> str:
    return "–" if row.value is None else f"{_number(row.value)} {row.unit}".strip()


def _spread(row: Row) -> str:
    if row.low is None or row.high is None or row.rounds == 1:
        return "1 round" if row.value is not None else ""
    return f"{_number(row.low)}–{_number(row.high)} ({row.rounds})"


def _target(row: Row) -> str:
    return "" if row.target is None else f"{'≥' if row.at_least else '≤'} {row.target:g} {row.unit}".strip()
