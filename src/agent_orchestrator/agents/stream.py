"""What an agent's CLI says while it works: JSON lines, read in whole lines and bounded, turned into typed events.

An adapter says what a line means; what it does not know is ignored. Nothing here judges, and nothing is ever looked for
in raw text: a file that mentions an error is not an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import LINE_LIMIT_BYTES

LOOK_BYTES = 256 * 1024
"""What one look at a growing stream reads at most; a result stands in its last line."""

NEW_BYTES = 4 * 1024 * 1024
"""What one look at new lines reads at most: an agent that floods is stopped by its output limit, not read to the end."""

WRITE, RUN = "write", "run"
"""What tools do that can show whether anything was done."""

NOTES_MAX = 5
"""What a CLI finds wanting is told this many times."""

_BLOCK_BYTES = 256 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class SessionBegan(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI's own name for the conversation."""

    session: str
    model: str | None = None


class ToolUsed(msgspec.Struct, frozen=True, kw_only=True):
    """The model used a tool."""

    tool: str
    call: str = ""
    """Which use it is, where its end is told by itself."""
    asked: str = ""
    """What the tool was to do, shortly: a command, a path."""
    does: str = ""
    """`write` for one that changes files, `run` for one that runs commands."""


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A use of a tool is over: whether it did what it was to do. A command did when it exited with 0."""

    call: str
    ok: bool


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The model said something."""

    text: str


class Consumed(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and money: of one call to the model, or, with `total`, of all so far."""

    usage: Usage
    total: bool = False
    call: str = ""
    """Which call it was, where its answer comes in pieces: each with the whole input and its own output."""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """A tool was refused to the model."""

    tool: str
    why: str = ""
    asked: str = ""
    """What the tool was to do, where that is told: a command, a path."""
    call: str = ""
    """Which use of the tool it was, where a refusal is told twice."""


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """The account's rate limit was hit."""

    retry_at_us: int | None = None
    window: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal event: what the CLI itself makes of its work."""

    ok: bool
    message: str = ""
    status: int | None = None
    """The HTTP status that ended it."""
    reason: str = ""
    """`limit` when it stopped at a limit of its own, `budget` when that was money, `report` when the model could not be
    brought to report validly."""
    report: dict[str, Any] | None = None
    final: bool = True
    """False for an error that the CLI means to mend by itself: the end only if nothing follows."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something is not as it should be, and the CLI works without it."""

    text: str


class WentOn(msgspec.Struct, frozen=True, kw_only=True):
    """What looked like the end was none: the CLI works on."""


StreamEvent = SessionBegan | ToolUsed | ToolEnded | Said | Consumed | Denied | Limited | Noted | Ended | WentOn
Reader = Callable[[dict[str, Any]], Iterable[StreamEvent]]
LineReader = Callable[[bytes], Iterable[StreamEvent]]


class Transcript:
    """Everything a stream said, folded."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.model: str | None = None
        self.tools = 0
        self.asked: dict[str, str] = {}
        """What uses of tools were to do, by call."""
        self.does: dict[str, str] = {}
        self.ended: dict[str, bool] = {}
        """Changes of files and commands that are over, by call: whether they went well."""
        self.text = ""
        self.total: Usage | None = None
        self.calls: dict[str, Usage] = {}
        self.denials: dict[tuple[str, str], Denied] = {}
        self.limit: Limited | None = None
        self.notes: list[str] = []
        self.end: Ended | None = None
        self.skipped = 0
        """Lines that were too long to read."""

    def add(self, event: StreamEvent) -> None:
        """Takes one event in."""
        match event:
            case SessionBegan():
                self.session, self.model = event.session, event.model or self.model
            case ToolUsed():
                self.tools += 1
                if event.call and event.asked:
                    self.asked[event.call] = event.asked
                if event.call and event.does:
                    self.does[event.call] = event.does
            case ToolEnded() if event.call in self.does:
                self.ended[event.call] = event.ok
            case Said():
                self.text = event.text
            case Consumed() if event.total:
                self.total = event.usage
            case Consumed():
                self.model = self.model or event.usage.model
                call = event.call or str(len(self.calls))
                known = self.calls.get(call)
                self.calls[call] = event.usage if known is None else _pieced(known, event.usage)
            case Denied():
                asked = event.asked or self.asked.get(event.call, "")
                key = (event.tool, event.call or asked or event.why)
                self.denials[key] = msgspec.structs.replace(event, asked=asked)
            case Limited():
                self.limit = event
            case Noted() if event.text not in self.notes and len(self.notes) < NOTES_MAX:
                self.notes.append(event.text)
            case Ended():
                # What failed stays failed: one CLI calls a loop that it broke off a success in the end.
                self.end = event if self.end is None or self.end.ok else self.end
            case WentOn():
                self.end = None

    @property
    def unwritten(self) -> list[str]:
        """The changes of files that failed, where none went well and no command did; without those that were refused."""
        refused = {one.call for one in self.denials.values()}
        failed = [call for call, ok in self.ended.items() if not ok and self.does[call] == WRITE and call not in refused]
        return [] if any(self.ended.values()) else failed

    @property
    def usage(self) -> Usage | None:
        """Everything together: by the last total, else by all calls."""
        if self.total is not None or not self.calls:
            return self.total
        summed = reduce(sum_usage, self.calls.values())
        return msgspec.structs.replace(summed, calls=len(self.calls))


def _pieced(one: Usage, other: Usage) -> Usage:
    """Two pieces of one call."""
    output = (one.output_tokens or 0) + (other.output_tokens or 0)
    return msgspec.structs.replace(one, output_tokens=output)


def read_transcript(path: Path, reader: Reader) -> Transcript:
    """The transcript of a stream that has ended."""
    seen, read = Transcript(), json_lines(reader)
    for line in read_lines(path):
        if line is None:
            seen.skipped += 1
        else:
            for event in read(line):
                seen.add(event)
    return seen


def json_lines(reader: Reader) -> LineReader:
    """What a line means whose JSON object means that."""

    def read(line: bytes) -> Iterable[StreamEvent]:
        document = decode_line(line)
        return reader(document) if document is not None else ()

    return read


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; anything else is somebody's chatter."""
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
        """Those that have come since; what is still unread is read at the next look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(NEW_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = rest if len(rest) <= LINE_LIMIT_BYTES else b""
        return whole


class ResultWatch:
    """Looks for the terminal event in a stream that grows: whole lines only, each once, at most LOOK_BYTES at a time.

    What lies further back than that when it looks is not looked at: a terminal event is the last thing that is written.
    """

    def __init__(self, path: Path, reader: Reader) -> None:
        self._path, self._reader = path, reader
        self._offset = 0
        self._seen = False

    def __call__(self) -> bool:
        """Whether the terminal event has been written, and nothing that takes it back."""
        for event in self._new_events():
            if isinstance(event, Ended):
                self._seen = self._seen or event.final
            elif isinstance(event, WentOn):
                self._seen = False
        return self._seen

    def _new_events(self) -> list[StreamEvent]:
        try:
            with self._path.open("rb") as file:
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


def sum_usage(one: Usage, other: Usage) -> Usage:
    """Both together; what one of them does not know is taken from the other."""
    sums = {
        name: (getattr(one, name) or 0) + (getattr(other, name) or 0)
        for name in COUNTED
        if getattr(one, name) is not None or getattr(other, name) is not None
    }
    return Usage(model=other.model or one.model, session=other.session or one.session, **sums)


COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")
"""The fields of a Usage that add up."""


def read_lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a file; None for one that is too long. A last line without an end counts: nobody will end it now."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    rest, too_long = b"", False
    try:
        while block := os.read(opened, _BLOCK_BYTES):
            *whole, last = block.split(b"\n")
            for line in whole:
                yield None if too_long or len(rest) + len(line) > LINE_LIMIT_BYTES else rest + line
                rest, too_long = b"", False
            rest = b"" if too_long else rest + last
            too_long = too_long or len(rest) > LINE_LIMIT_BYTES
    except OSError:  # a directory or a device in its place
        return
    finally:
        os.close(opened)
    if too_long or rest:
        yield None if too_long else rest
