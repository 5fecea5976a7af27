"""A transcript as lines of text: the one way in which surfaces show what an agent said and did.

A line is a list of spans, each with the tone that a surface may give it. Whatever an agent wrote is cleaned here of escapes
and control characters, so that none of it can steer a terminal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from agent_orchestrator.agents import events
from agent_orchestrator.agents.output import readable
from agent_orchestrator.agents.transcript import (
    CallBegan,
    CallEnded,
    CallState,
    Item,
    Reported,
    SpentSoFar,
    TextLine,
    Unread,
    WorkEnded,
    describe_call,
)
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.text import clip_line, stamp
from agent_orchestrator.core.units import say_cost, say_duration

MARK, AGAIN, NOTE, UNREAD = "●", "↻", "!", "?"
BETWEEN = " · "
NARROW_CELLS = 60
"""A terminal below this width is told how a call ended, and not how long it took."""
MESSAGE_CHARS = 600

CALL_TONES = {CallState.OK: "green", CallState.FAILED: "red", CallState.DENIED: "red", CallState.UNFINISHED: "yellow"}
_ENDS = {True: ("done", "green"), False: ("failed", "red"), None: ("ended without a result", "yellow")}
_FENCE = re.compile(r" {0,3}(```|~~~)")
_KEPT = re.compile(r" {4}|\t| {0,3}(?:\||>|#)")
"""Lines that are kept as they are: code, tables, quotations, headings."""
_BULLET = re.compile(r"\s*(?:[-*+] |\d{1,3}[.)] )?")
_UNITS = ("kB", "MB", "GB")


class Span(NamedTuple):
    """A part of a line; the tone is a colour's name, or empty."""

    text: str
    tone: str = ""


Line = list[Span]


class TranscriptText:
    """Turns the items of one transcript into lines; it remembers only what stands above the next line."""

    def __init__(self, width: int, *, wrap: bool) -> None:
        self._width, self._wrap = width, wrap
        self._said: bool | None = None
        """True if words stand above the next line, None if nothing does."""
        self._fenced = False

    def lines(self, item: Item) -> Iterator[Line]:
        """Return the lines of an item; words stand apart from what was done."""
        made, says = list(self._render(item)), isinstance(item, events.Said)
        if not made:
            return
        if self._said or (says and self._said is not None):
            yield []
        # The last word on what reaches a terminal; what is measured was cleaned before.
        yield from ([Span(readable(text), tone) for text, tone in line] for line in made)
        self._said = says

    def pending(self, calls: Iterable[events.ToolUsed], usage: Usage | None) -> Line:
        """Return the one line about the calls that run; empty without any."""
        running = list(calls)
        if not running:
            return []
        more = [f"{len(running)} running"] if len(running) > 1 else ["running"]
        tail = BETWEEN + BETWEEN.join([*more, *_spent(usage)])
        return self._call_line("dim", running[-1].tool, describe_call(running[-1].given), [Span(tail, "dim")])

    def _render(self, item: Item) -> Iterator[Line]:
        match item:
            case TextLine():
                yield [Span(item.text)]
            case events.Said():
                yield from self._say(readable(item.text).strip("\n").rstrip())
            case CallEnded():
                yield from self._call(item)
            case CallBegan():
                return
            case WorkEnded() | SpentSoFar():
                yield from self._end(item)
            case Reported():
                yield from self._report(item)
            case events.SessionBegan():
                told = f"{item.model}, session {item.session}" if item.model else f"session {item.session}"
                yield [Span(self._clip(_one_line(told)), "dim")]
            case _:
                yield from self._note(item)

    def _say(self, text: str) -> Iterator[Line]:
        self._fenced = False
        for line in text.split("\n"):
            fence = _FENCE.match(line) is not None
            kept = self._fenced or fence or _KEPT.match(line) is not None
            self._fenced = self._fenced != fence
            for part in [line] if kept else self._wrapped(line):
                yield [Span(part)]

    def _call(self, call: CallEnded) -> Iterator[Line]:
        tone = CALL_TONES[call.state]
        took = [Span(BETWEEN + say_duration(call.took_s), "dim")] if call.took_s is not None else []
        size = [Span(BETWEEN + say_bytes(call.result_bytes), "dim")] if call.result_bytes is not None else []
        state = [Span(BETWEEN, "dim"), Span(call.state.value, tone)]
        yield self._call_line(tone, call.tool, call.about, [*took, *state, *size] if self._width >= NARROW_CELLS else state)
        if call.why:
            for part in self._wrapped(f"  {clip_line(readable(call.why), MESSAGE_CHARS)}", "  "):
                yield [Span(part, "dim")]

    def _call_line(self, tone: str, tool: str, about: str, tail: list[Span]) -> Line:
        """Return the line of a call; what it is about gives way."""
        name = clip_cells(_one_line(tool) or "a tool", self._width // 2)
        used = cells_of(f"{MARK} {name} ") + sum(cells_of(span.text) for span in tail)
        subject = clip_cells(_one_line(about), max(1, self._width - used))
        return [Span(MARK, tone), Span(f" {name}", "bold"), *([Span(f" {subject}")] if subject else []), *tail]

    def _report(self, item: Reported) -> Iterator[Line]:
        status, summary = item.report.get("status"), item.report.get("summary")
        if isinstance(status, str) and isinstance(summary, str):
            told = f"report: {status}: {summary}" if summary else f"report: {status}"
        else:
            told = f"report: {msgspec.json.encode(item.report).decode()}"
        for part in self._wrapped(clip_line(readable(told), MESSAGE_CHARS), "  "):
            yield [Span(part)]

    def _end(self, item: WorkEnded | SpentSoFar) -> Iterator[Line]:
        spent = "".join(BETWEEN + part for part in _spent(item.usage))
        if isinstance(item, SpentSoFar):
            yield [Span(f"so far{spent}", "dim")]
            return
        spent += " in this session" if spent and item.whole_session and self._width >= NARROW_CELLS else ""
        message = clip_line(readable(item.message), MESSAGE_CHARS)
        told, tone = _ENDS[item.ok]
        *above, last = self._wrapped(f"{told}: {message}" if message else told, "  ")
        yield from ([Span(part, tone)] for part in above)
        if not self._wrap or cells_of(last) + cells_of(spent) <= self._width:
            yield [Span(last, tone), Span(spent, "dim")]
        else:
            yield [Span(last, tone)]
            yield [Span(f"  {spent.removeprefix(BETWEEN)}", "dim")]

    def _note(self, item: Item) -> Iterator[Line]:
        match item:
            case events.Retried():
                which = f" {item.attempt}" if item.attempt is not None else ""
                most = f" of {item.most}" if item.attempt is not None and item.most is not None else ""
                wait = f" in {say_duration(item.wait_s)}" if item.wait_s is not None else ""
                why = f": {_one_line(item.why)}" if item.why else ""
                yield [Span(self._clip(f"{AGAIN} retry{which}{most}{wait}{why}"), "yellow")]
            case events.Limited():
                window = f"{_one_line(item.window)} " if item.window else ""
                until = f" until {stamp(item.retry_at_us)}" if item.retry_at_us is not None else ""
                yield [Span(self._clip(f"{AGAIN} {window}rate limit{until}"), "yellow")]
            case events.Noted():
                for part in self._wrapped(f"{NOTE} {clip_line(readable(item.text), MESSAGE_CHARS)}", "  "):
                    yield [Span(part, "yellow")]
            case Unread():
                yield [Span(self._clip(f"{UNREAD} {_one_line(item.what)}"), "dim")]

    def _clip(self, text: str) -> str:
        return clip_cells(text, self._width)

    def _wrapped(self, text: str, indent: str | None = None) -> list[str]:
        """Return the text in lines that fit, the next ones below its first word; unbroken where nothing is wrapped."""
        if not self._wrap or cells_of(text) <= self._width:
            return [text]
        found = _BULLET.match(text)
        below = indent if indent is not None else " " * min(len(found[0]) if found is not None else 0, self._width // 2)
        return list(wrap_cells(text, self._width, below))


def wrap_cells(text: str, width: int, below: str) -> Iterator[str]:
    """Break a line between words; a word that is too long for a line stays whole, so that it can be copied."""
    line, filled = "", False
    for word in re.split(r"(?<=\S) +(?=\S)", text):
        if filled and cells_of(line) + 1 + cells_of(word) > width:
            yield line
            line, filled = below, False
        line = f"{line} {word}" if filled else line + word
        filled = True
    yield line


def cells_of(text: str) -> int:
    """Return the columns that a terminal needs for the text."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def clip_cells(text: str, most: int) -> str:
    """Cut the text to that many columns, `…` for what is missing: of a path the beginning, of anything else the end."""
    if cells_of(text) <= most:
        return text
    path = text.startswith("/") and " " not in text
    room, kept = most - 1, []
    for char in reversed(text) if path else text:
        room -= _cells(char)
        if room < 0:
            break
        kept.append(char)
    return f"…{''.join(reversed(kept))}" if path else f"{''.join(kept).rstrip()}…"


def say_bytes(count: int) -> str:
    """Return a size as people say it: 117 B, 2.3 kB, 4.1 MB."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in _UNITS:
        size /= 1000
        if size < 1000 or unit == _UNITS[-1]:
            break
    return f"{size:.1f} {unit}"


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _one_line(text: str) -> str:
    return " ".join(readable(text).split())


def _spent(usage: Usage | None) -> list[str]:
    """Return what was consumed, as far as it is known."""
    if usage is None:
        return []
    tokens = [f"{usage.tokens:,} tokens"] if usage.tokens is not None else []
    return [*tokens, *([say_cost(usage.cost_usd)] if usage.cost_usd is not None else [])]
