"""The events of an agent's stream, and the transcript that they add up to.

The adapters of CLIs make them from JSON lines (`stream.py`). Nothing here judges.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import msgspec

from agent_orchestrator.core.inputs import Usage

WRITE, RUN = "write", "run"
"""The deeds of tools that show whether anything was done."""

NOTES_MAX = 5
"""The most complaints of a CLI that are passed on."""

COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")
"""The fields of a Usage that add up."""


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
    """The tool's command or path."""
    does: str = ""
    """`write` for one that changes files, `run` for one that runs commands."""
    given: dict[str, Any] = {}
    """Its arguments, as the model gave them."""
    at_us: int | None = None


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A use of a tool is over: whether it did what it was to do. A command did when it exited with 0."""

    call: str
    ok: bool
    at_us: int | None = None
    result_bytes: int | None = None
    """The size of what the model got to read."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The model said something."""

    text: str
    piece: bool = False
    """True where a message comes in pieces: the next one goes on where this one ends."""


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
    """The tool's command or path, where that is told."""
    call: str = ""
    """Which use of the tool it was, where a refusal is told twice."""


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """The account's rate limit was hit."""

    retry_at_us: int | None = None
    window: str = ""


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """A call to the model failed, and the CLI tries it again by itself."""

    why: str
    attempt: int | None = None
    most: int | None = None
    """The number of attempts after which it gives up."""
    wait_s: float | None = None


class Finished(msgspec.Struct, frozen=True, kw_only=True):
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
    """An end taken back: the CLI works on."""


StreamEvent = SessionBegan | ToolUsed | ToolEnded | Said | Consumed | Denied | Limited | Retried | Noted | Finished | WentOn


class Transcript:
    """The sum of a stream's events."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.model: str | None = None
        self.tools = 0
        self.asked: dict[str, str] = {}
        """The commands and paths that tools were used with, by call."""
        self.does: dict[str, str] = {}
        self.ended: dict[str, bool] = {}
        """Changes of files and commands that are over, by call: whether they went well."""
        self.text = ""
        self._in_pieces = False
        self.total: Usage | None = None
        self.calls: dict[str, Usage] = {}
        self.denials: dict[tuple[str, str], Denied] = {}
        self.limit: Limited | None = None
        self.notes: list[str] = []
        self.end: Finished | None = None
        self.skipped = 0
        """Lines that were too long to read."""

    def add(self, event: StreamEvent) -> None:
        """Take one event in."""
        match event:
            case SessionBegan():
                self.session, self.model = event.session, event.model or self.model
            case ToolUsed():
                self.tools += 1
                self._in_pieces = False
                if event.call and event.asked:
                    self.asked[event.call] = event.asked
                if event.call and event.does:
                    self.does[event.call] = event.does
            case ToolEnded() if event.call in self.does:
                self.ended[event.call] = event.ok
            case Said():
                self.text = self.text + event.text if event.piece and self._in_pieces else event.text
                self._in_pieces = event.piece
            case Consumed() if event.total:
                self.total = event.usage
            case Consumed():
                self.model = self.model or event.usage.model
                call = event.call or str(len(self.calls))
                known = self.calls.get(call)
                self.calls[call] = event.usage if known is None else _add_piece(known, event.usage)
            case Denied():
                asked = event.asked or self.asked.get(event.call, "")
                key = (event.tool, event.call or asked or event.why)
                self.denials[key] = msgspec.structs.replace(event, asked=asked)
            case Limited():
                self.limit = event
            case Noted() if event.text not in self.notes and len(self.notes) < NOTES_MAX:
                self.notes.append(event.text)
            case Finished():
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
        """The whole usage: the last total, else the sum of all calls."""
        if self.total is not None or not self.calls:
            return self.total
        summed = reduce(sum_usage, self.calls.values())
        return msgspec.structs.replace(summed, calls=len(self.calls))


def _add_piece(one: Usage, other: Usage) -> Usage:
    """Add a piece to a call: both carry the whole input."""
    output = (one.output_tokens or 0) + (other.output_tokens or 0)
    return msgspec.structs.replace(one, output_tokens=output)


def sum_usage(one: Usage, other: Usage) -> Usage:
    """Add two usages; a count that one of them does not know is the other's."""
    sums = {
        name: (getattr(one, name) or 0) + (getattr(other, name) or 0)
        for name in COUNTED
        if getattr(one, name) is not None or getattr(other, name) is not None
    }
    return Usage(model=other.model or one.model, session=other.session or one.session, **sums)
