"""A run at a moment, and its picture in lines: pure, so that a test can look at every size of terminal.

What waits for a person stands on top, then the run with its bar and its money, then the units at work. What does not fit gives
way: names before numbers, numbers before the status of a unit, which is never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent_orchestrator.core.units import say_cost, say_count, say_duration
from agent_orchestrator.surfaces.transcript import Line, Span, cells_of, clip_cells, wrap_cells

BAR_CELLS = 24
WIDE_CELLS = 100
"""From this width on, roles and tokens have columns of their own."""
LABEL_SHARE = 5
"""The names of units get one part in so many of the width."""
NOW_CELLS = 12
"""Less room than this for what a unit does now, and a column gives way."""
ROLE_CELLS = 30
"""Less room than this, and the role is left out."""
RUN_CELLS = 8
"""An id of a run is not shortened to less than this."""
QUESTION_LINES, SAID_LINES = 6, 3
GAP = "  "
ASKS, DONE, TO_DO = "?", "━", "─"


class UnitRow(NamedTuple):
    """A unit at work."""

    label: str
    status: str
    """One word: working, checking, parked."""
    tone: str = ""
    who: str = ""
    """The role that works; empty where the name of the unit says it."""
    now: tuple[Span, ...] = ()
    """The tool in use, or the last words."""
    took_s: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class Asked(NamedTuple):
    """A question to the person at the terminal."""

    unit: str
    text: str
    facts: tuple[Span, ...] = ()
    """Each on a line of its own: the checks and how they ended, the size of the diff."""
    ways: tuple[str, ...] = ()
    """The keys, or the commands, that answer it; each stays whole."""
    said: str = ""
    """The last word about it: that it was answered, or why an answer does not count."""
    others: int = 0
    """The number of other questions."""
    entry: str | None = None
    """The line that is being typed, with what it is for; it stands last, so that the cursor is at its end."""


class Frame(NamedTuple):
    """A run at a moment."""

    noun: str
    run: str
    name: str
    unit: str
    """The name of what the run counts."""
    done: int
    total: int
    failed: int
    status: str
    tone: str
    took_s: float
    notes: tuple[Span, ...] = ()
    """Each on a line of its own: why it waits, that nobody drives it."""
    money: tuple[str, ...] = ()
    """The budget, in the longest words first; empty where nothing is known."""
    asked: Asked | None = None
    rows: tuple[UnitRow, ...] = ()
    busy: int = 0
    """The number of units at work, those that are not among the rows included."""
    to_come: int = 0


def render(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the lines of a terminal of this size, at most as many as it has."""
    width, height = max(1, width), max(1, height)
    entry = _entry(frame.asked, width)
    head = [_head(frame, width)]
    below = [[Span(clip_cells(f"  {note.text}", width), note.tone)] for note in frame.notes]
    money = _longest(frame.money, width - 2)
    below += [[Span(f"  {money}", "dim")]] if money else []
    room = max(0, height - len(entry) - len(head))
    asked = _question(frame.asked, width, room) if frame.asked is not None else []
    room -= len(asked)
    below = below[:room]
    units = _units(frame, width, room - len(below))
    return [_fit(line, width) for line in (*asked, *head, *below, *units, *entry)][-height:]


def _question(asked: Asked, width: int, room: int) -> list[Line]:
    """Return the question, the evidence, and how to answer; where lines are few, first the evidence gives way."""
    ways: list[Line] = [[Span(part, "bold")] for part in _flow(asked.ways, width)]
    if asked.others:
        ways.append([Span(clip_cells(f"  and {say_count(asked.others, 'more question')}", width), "yellow")])
    facts: list[Line] = [[Span(clip_cells(f"  {fact.text}", width), fact.tone)] for fact in asked.facts]
    said = list(wrap_cells(f"  {asked.said}", width, "  "))[:SAID_LINES] if asked.said else []
    ways = [*([Span(clip_cells(part, width), "yellow")] for part in said), *ways]
    most = max(1, min(QUESTION_LINES, room - len(ways)))
    opening = f"{ASKS} {asked.unit}: " if asked.unit else f"{ASKS} "
    words = " ".join(asked.text.split()) or "waits for you"
    wrapped = list(wrap_cells(f"{opening}{words}", width, "  "))
    shown = [clip_cells(part, width) for part in wrapped[:most]]
    if len(wrapped) > most:
        shown[-1] = clip_cells(f"{shown[-1]} …", width)
    question: list[Line] = [[Span(part, "yellow")] for part in shown]
    return [*question, *facts[: max(0, room - len(question) - len(ways))], *ways][:room]


def _flow(ways: Sequence[str], width: int) -> list[str]:
    """Return short things side by side, as many as fit in a line."""
    lines: list[str] = []
    for way in ways:
        if lines and cells_of(lines[-1]) + len(GAP) + cells_of(way) <= width:
            lines[-1] += f"{GAP}{way}"
        else:
            lines.append(f"  {way}")
    return [clip_cells(line, width) for line in lines]


def _entry(asked: Asked | None, width: int) -> list[Line]:
    """Return the line that is typed: its end is what a person looks at."""
    if asked is None or asked.entry is None:
        return []
    text, room = asked.entry, width - 1
    while cells_of(text) > room:
        text = text[1:]
    return [[Span(text if text == asked.entry else f"…{text[1:]}")]]


def _head(frame: Frame, width: int) -> Line:
    """Return the run with its bar: the longest of its spellings that fits, the status always whole."""
    count = f"{frame.done}/{frame.total}" if frame.total else ""
    counted = f"{count} {frame.unit}s" if count else ""
    failed = f"{frame.failed} failed" if frame.failed else ""
    took = say_duration(frame.took_s)
    run = clip_cells(frame.run, max(RUN_CELLS, width // 4))
    named = f"{frame.noun} {run}"
    spellings = (
        ((named, frame.name), BAR_CELLS, (counted, failed, took)),
        ((named,), BAR_CELLS, (counted, failed, took)),
        ((named,), BAR_CELLS // 2, (counted, failed, took)),
        ((run,), BAR_CELLS // 3, (count, failed, took)),
        ((run,), 0, (count, failed)),
        ((), 0, (count, failed)),
        ((), 0, (count,)),
        ((), 0, ()),
    )
    line: Line = []
    for names, bar, tail in spellings:
        line = _spell(frame, names, bar, tail)
        if sum(cells_of(span.text) for span in line) <= width:
            break
    return line if sum(cells_of(span.text) for span in line) <= width else [Span(clip_cells(frame.status, width), frame.tone)]


def _spell(frame: Frame, names: Iterable[str], bar: int, tail: Iterable[str]) -> Line:
    parts: list[Line] = [[Span(name, "bold" if not at else "")] for at, name in enumerate(one for one in names if one)]
    parts += [_bar(frame, bar)] if bar and frame.total else []
    parts += [[Span(text, "red" if text.endswith(" failed") else "")] for text in tail if text]
    parts.append([Span(frame.status, frame.tone)])
    return [span for at, part in enumerate(parts) for span in ([Span(GAP)] if at else []) + part]


def _bar(frame: Frame, cells: int) -> Line:
    filled = min(cells, frame.done * cells // frame.total)
    return [Span(DONE * filled, "green"), Span(TO_DO * (cells - filled), "dim")]


def _longest(spellings: Sequence[str], width: int) -> str:
    """Return the first of the spellings that fits, else the last one cut."""
    fitting = (one for one in spellings if cells_of(one) <= width)
    return next(fitting, clip_cells(spellings[-1], max(1, width)) if spellings else "")


def _units(frame: Frame, width: int, room: int) -> list[Line]:
    """Return the units at work in columns, and the number of those that are not shown."""
    rows = list(frame.rows)
    hidden = frame.busy - len(rows)
    if len(rows) > room or (hidden and len(rows) >= room):
        rows = rows[: max(0, room - 1)]
    hidden = frame.busy - len(rows)
    lines = _columns(rows, width)
    counts = [f"{hidden} more at work"] if hidden else []
    counts += [f"{frame.to_come} to come"] if frame.to_come else []
    if counts and len(lines) < room:
        lines.append([Span(clip_cells(f"  and {', '.join(counts)}" if hidden else f"  {counts[0]}", width), "dim")])
    return lines


def _columns(rows: list[UnitRow], width: int) -> list[Line]:
    if not rows:
        return []
    wide = width >= WIDE_CELLS
    numbers = [[_tokens(row, wide), _cost(row), _took(row)] for row in rows]
    kept = [at for at in range(3) if any(one[at] for one in numbers)]
    label = min(max(cells_of(row.label) for row in rows), max(4, width // LABEL_SHARE))
    status = max(cells_of(row.status) for row in rows)
    who = max(cells_of(row.who) for row in rows) if wide else 0
    who = min(who, width // 8)

    def room(columns: list[int]) -> int:
        sizes = [max(cells_of(one[at]) for one in numbers) for at in columns]
        used = 2 + label + len(GAP) + status + (len(GAP) + who if who else 0) + sum(size + len(GAP) for size in sizes)
        return width - used - len(GAP)

    while kept and room(kept) < NOW_CELLS:
        kept.pop(0)
    if not kept and room(kept) < 0:
        label = max(1, width - 2 - len(GAP) - status)
    lines = []
    for row, texts in zip(rows, numbers, strict=True):
        line = [Span("  "), Span(_pad(clip_cells(row.label, label), label), "bold")]
        line += [Span(GAP), Span(_pad(row.status, status), row.tone)]
        line += [Span(GAP), Span(_pad(clip_cells(row.who, who), who))] if who else []
        now = max(0, room(kept if any(texts) else []))
        told = not wide and row.who and now >= ROLE_CELLS
        said = (Span(f"{clip_cells(row.who, NOW_CELLS)}: ", "dim"), *row.now) if told else row.now
        line += [Span(GAP), *_fit(said, now, pad=any(texts))] if now else []
        for at in kept:
            size = max(cells_of(one[at]) for one in numbers)
            line += (
                [Span(GAP), Span(" " * (size - cells_of(texts[at])) + texts[at], "" if at == 2 else "dim")] if any(texts) else []
            )
        lines.append(line)
    return lines


def _fit(spans: Iterable[Span], width: int, *, pad: bool = False) -> Line:
    """Return the spans cut to a width, or filled up to it."""
    line, room = [], width
    for span in spans:
        if cells_of(span.text) > room:
            if room > 0:
                line.append(Span(clip_cells(span.text, room), span.tone))
                room -= cells_of(line[-1].text)
            break
        line.append(span)
        room -= cells_of(span.text)
    return [*line, Span(" " * room)] if pad and room > 0 else line


def _pad(text: str, cells: int) -> str:
    return text + " " * (cells - cells_of(text))


def _took(row: UnitRow) -> str:
    return say_duration(row.took_s) if row.took_s is not None else ""


def _cost(row: UnitRow) -> str:
    return say_cost(row.cost_usd) if row.cost_usd is not None else ""


def _tokens(row: UnitRow, wide: bool) -> str:
    if row.tokens is None:
        return ""
    if wide:
        return f"{row.tokens:,} tokens"
    return f"{row.tokens} tok" if row.tokens < 1000 else f"{row.tokens / 1000:.0f}k tok"
