"""The output of an agent's CLI: JSON lines, read in whole lines and bounded, turned into events.

An adapter says what a line means; what it does not know is ignored. Nothing here judges, and nothing is ever looked for
in raw text: a file that mentions an error is not an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.agents.events import COUNTED, Consumed, Finished, StreamEvent, Transcript, WentOn
from agent_orchestrator.agents.options import price_usage
from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import LINE_LIMIT_BYTES
from agent_orchestrator.core.units import COUNT_MAX, from_iso

LOOK_BYTES = 256 * 1024
"""The most that one look at a growing stream reads; a result stands in its last line."""

NEW_BYTES = 4 * 1024 * 1024
"""The most that one look at new lines reads: an agent that floods is stopped by its output limit, not read to the end."""

_BLOCK_BYTES = 256 * 1024
_decode = typed.decoder(dict[str, Any])

Reader = Callable[[dict[str, Any]], Iterable[StreamEvent]]
LineReader = Callable[[bytes], Iterable[StreamEvent]]


def read_transcript(path: Path, reader: Reader) -> Transcript:
    """Read the transcript of a stream that has ended."""
    seen, read = Transcript(), json_lines(reader)
    for line in read_lines(path):
        if line is None:
            seen.skipped += 1
        else:
            for event in read(line):
                seen.add(event)
    return seen


def json_lines(reader: Reader) -> LineReader:
    """Turn a reader of JSON objects into one of lines."""

    def read(line: bytes) -> Iterable[StreamEvent]:
        document = decode_line(line)
        return reader(document) if document is not None else ()

    return read


def decode_line(line: bytes) -> dict[str, Any] | None:
    """Decode the JSON object on a line; anything else is somebody's chatter."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class NewLines:
    """The lines of a file that grows: whole ones only, each once, a bounded part at a look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def __call__(self) -> list[bytes]:
        """Return the lines that have come since; what is still unread is read at the next look."""
        try:
            with open_launched(self._path) as file:
                file.seek(self._offset)
                data = file.read(NEW_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = rest if len(rest) <= LINE_LIMIT_BYTES else b""
        return whole


class ResultWatch:
    """A watch on a growing stream for its terminal event: whole lines only, each once, at most LOOK_BYTES at a time.

    What lies further back than that when it looks is not looked at: a terminal event is the last thing that is written.
    """

    def __init__(self, path: Path, reader: Reader) -> None:
        self._path, self._reader = path, reader
        self._offset = 0
        self._seen = False

    def __call__(self) -> bool:
        """Return True once the terminal event has been written, and nothing that takes it back."""
        for event in self._new_events():
            if isinstance(event, Finished):
                self._seen = self._seen or event.final
            elif isinstance(event, WentOn):
                self._seen = False
        return self._seen

    def _new_events(self) -> list[StreamEvent]:
        try:
            with open_launched(self._path) as file:
                size = file.seek(0, os.SEEK_END)
                self._offset = max(self._offset, size - LOOK_BYTES)
                file.seek(self._offset)
                data = file.read(LOOK_BYTES)
        except OSError:
            return []
        whole, newline, _ = data.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        documents = [document for line in whole.split(b"\n") if (document := decode_line(line)) is not None]
        return [event for document in documents for event in self._reader(document)]


class StreamMeter:
    """A meter of what an agent consumes, read from its growing output call by call. It judges nothing."""

    def __init__(self, path: Path, reader: LineReader, choice: AgentChoice, *, totals: bool) -> None:
        self._lines, self._reader, self._choice = NewLines(path), reader, choice
        self._totals = totals
        """True if a total is this launch's own; one that counts a whole session says nothing of a single call."""
        self._seen = Transcript()

    def __call__(self) -> Reading:
        """Read what was consumed by now."""
        for line in self._lines():
            for event in self._reader(line):
                if isinstance(event, Consumed):
                    self._take(event)
        return self._reading()

    def _take(self, event: Consumed) -> None:
        if not event.total:
            self._seen.add(event)
        elif self._totals:
            self._seen.add(Consumed(usage=_rest_of(event.usage, self._seen.usage)))

    def _reading(self) -> Reading:
        calls = [price_usage(call, self._choice) for call in self._seen.calls.values()]
        costs = [call.cost_usd for call in calls if call.cost_usd is not None]
        tokens = [call.tokens for call in calls if call.tokens is not None]
        return Reading(
            calls=len(calls),
            cost_usd=sum(costs) if len(costs) == len(calls) else None,
            tokens=sum(tokens) if len(tokens) == len(calls) else None,
            largest_usd=max(costs, default=None),
            largest_tokens=max(tokens, default=None),
        )


def _rest_of(total: Usage, known: Usage | None) -> Usage:
    """Return what a new total adds to the known usage: one call more."""
    if known is None:
        return total
    more = {name: max(0, value - (getattr(known, name) or 0)) for name in COUNTED if (value := getattr(total, name)) is not None}
    return Usage(model=total.model, **more)


def read_lines(path: Path) -> Iterator[bytes | None]:
    """Read the lines of a file; None for one that is too long. A last line without an end counts: nobody will end it now."""
    try:
        opened = open_launched(path)
    except FileNotFoundError:
        return
    rest, too_long = b"", False
    try:
        while block := opened.read(_BLOCK_BYTES):
            *whole, last = block.split(b"\n")
            for line in whole:
                yield None if too_long or len(rest) + len(line) > LINE_LIMIT_BYTES else rest + line
                rest, too_long = b"", False
            rest = b"" if too_long else rest + last
            too_long = too_long or len(rest) > LINE_LIMIT_BYTES
    finally:
        opened.close()
    if too_long or rest:
        yield None if too_long else rest


def at(document: object, *names: str) -> Any:
    """Return the value at a path of keys, or None: the lines of a CLI may change their shape at any time."""
    for name in names:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def text_at(document: object, *names: str) -> str:
    """Return the text at a path, or an empty one."""
    value = at(document, *names)
    return value if isinstance(value, str) else ""


def count_at(document: object, *names: str) -> int | None:
    """Return the count at a path, or None."""
    value = at(document, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else None


def money_at(document: object, *names: str) -> float | None:
    """Return the amount at a path, or None."""
    value = at(document, *names)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12 else None


def bytes_of(result: object) -> int | None:
    """Return the size of a tool's result: a text, or a list of blocks with texts; None if it is something else."""
    if isinstance(result, list):
        return sum(bytes_of(text_at(block, "text")) or 0 for block in result)
    return len(result.encode("utf-8", "replace")) if isinstance(result, str) else None


def table_at(document: object, *names: str) -> dict[str, Any]:
    """Return the object at a path, or an empty one."""
    value = at(document, *names)
    return value if isinstance(value, dict) else {}


def time_at(document: object, *names: str) -> int | None:
    """Return the ISO 8601 time at a path, in microseconds since the epoch, or None."""
    try:
        return from_iso(text_at(document, *names))
    except ValueError:
        return None
