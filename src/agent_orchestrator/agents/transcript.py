"""The transcript of a launch: what its agent said and did, as items that a surface can show.

A reader is fed a launch's lines one by one, also while they are written, and holds none of them. Whose stream it is shows in
its first lines, so that a script around a client is read like the client; what is nobody's stream is plain text. Nothing is
left out silently: a line of a shape that is not known becomes an item that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.agents import events, find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.options import price_usage
from agent_orchestrator.agents.stream import decode_line, text_at
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.core.units import US

CLIENTS = ("claude", "codex", "gemini", "opencode")
"""The adapters whose streams can be told apart."""

SHAPE_CHARS = 200
"""The most that is shown of a line that could not be read."""

MESSAGE_CHARS = 64 * 1024
"""The most of a message in pieces that is waited for."""

_SUBJECTS = ("command", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "description", "summary")
"""The arguments that say what a tool is used on, the best first."""


class CallState(StrEnum):
    """The end of a use of a tool."""

    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    UNFINISHED = "unfinished"


class CallBegan(msgspec.Struct, frozen=True, kw_only=True):
    """A tool was called; its end follows as an item of its own."""

    tool: str
    about: str


class CallEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A use of a tool, with all that is known of it."""

    tool: str
    state: CallState
    about: str = ""
    """The command, path, pattern or address that it was used on."""
    took_s: float | None = None
    result_bytes: int | None = None
    why: str = ""


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The agent answered with data instead of words."""

    report: dict[str, Any]


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of text that is no part of a stream."""

    text: str


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a stream that could not be read: of a kind that is not known, torn, or too long."""

    what: str


class WorkEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's own account of its end; the message is empty where it was said before."""

    ok: bool | None
    """None if it gave no account."""
    message: str = ""
    usage: Usage | None = None
    whole_session: bool = False
    """True where the usage counts everything since the session began."""


class SpentSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """The consumption of an agent that is still at work."""

    usage: Usage


Item = (
    events.SessionBegan
    | events.Said
    | events.Limited
    | events.Retried
    | events.Noted
    | CallBegan
    | CallEnded
    | Reported
    | TextLine
    | Unread
    | WorkEnded
    | SpentSoFar
)

_BESIDE = events.Finished | events.WentOn | events.Consumed | events.SessionBegan
"""Events that may follow an end without taking it back."""


class TranscriptReader:
    """A reader of one launch: lines of its output and of its error output go in, items come out in their order."""

    def __init__(self, choices: tuple[AgentChoice, ...] = ()) -> None:
        """Take the agents of the run for the prices that were set for them."""
        self._choices = choices
        self.open: dict[str, events.ToolUsed] = {}
        """The calls that have not ended, by their ids, the oldest first."""
        self._agent: CliAgent | None = None
        self._sum = events.Transcript()
        self._denied: set[str] = set()
        self._piece, self._said = "", ""
        self._end: events.Finished | None = None
        """An end that may be taken back, and before which the error output has its say."""
        self._ended = False

    @property
    def of_client(self) -> bool:
        """True once the stream is known to be a client's."""
        return self._agent is not None

    @property
    def usage(self) -> Usage | None:
        """The consumption up to now; None where nothing is known. A price counts if every agent it may be has it."""
        usage = self._sum.usage
        if usage is None or self._agent is None:
            return usage
        usage = msgspec.structs.replace(usage, model=usage.model or self._sum.model)
        able = (choice for choice in self._choices if choice.performer == self._agent.name)
        costs = {price_usage(usage, choice).cost_usd for choice in able}
        return msgspec.structs.replace(usage, cost_usd=costs.pop()) if len(costs) == 1 else usage

    def read(self, line: bytes | None) -> Iterator[Item]:
        """Return the items of a whole line of the output; None is one that is too long."""
        document = decode_line(line) if line is not None else None
        if document is not None and self._agent is None:
            self._agent = _recognize(document)
        if line is None:
            yield Unread(what="a line that is too long to show")
        elif self._agent is None:
            yield TextLine(text=line.decode("utf-8", "replace"))
        elif document is None:
            yield from self._read_text(line)
        else:
            yield from self._read_document(self._agent, document)

    def read_log(self, line: bytes | None) -> Iterator[Item]:
        """Return the items of a line of the error output: of a client's alone, and only what its stream does not tell."""
        if self._agent is not None and line is not None:
            for event in self._agent.read_log(line):
                yield from self._take(event)

    def close(self, *, ended: bool) -> Iterator[Item]:
        """Return what is left when nothing follows; `ended` if the launch is over and not only the reading."""
        yield from self._flush()
        for call in list(self.open):
            yield self._end_call(call, CallState.UNFINISHED)
        if self._end is not None:
            yield from self._say_end()
        elif ended and self._agent is not None and not self._ended:
            yield WorkEnded(ok=None, usage=self.usage)
        elif not ended and not self._ended and self.usage is not None:
            yield SpentSoFar(usage=self.usage)

    def _read_text(self, line: bytes) -> Iterator[Item]:
        text = line.decode("utf-8", "replace")
        if line.lstrip().startswith(b"{"):
            yield Unread(what=clip_line(text, SHAPE_CHARS))
        elif line:
            yield TextLine(text=text)

    def _read_document(self, agent: CliAgent, document: dict[str, Any]) -> Iterator[Item]:
        for event in agent.read(document):
            if not isinstance(event, _BESIDE):
                yield from self._say_end() if self._end is not None else ()
                self._ended = False
            yield from self._take(event)
        kind = agent.kind_of(document)
        if kind not in agent.kinds:
            yield Unread(what=clip_line(kind, SHAPE_CHARS) or clip_line(msgspec.json.encode(document).decode(), SHAPE_CHARS))

    def _take(self, event: events.StreamEvent) -> Iterator[Item]:
        if not isinstance(event, events.Said | events.Consumed):
            yield from self._flush()
        match event:
            case events.SessionBegan():
                if event.session != self._sum.session:
                    yield event
                self._sum.add(event)
            case events.Said():
                yield from self._say(event)
            case events.ToolUsed():
                if event.call not in self.open:
                    self.open[event.call] = event
                    yield CallBegan(tool=event.tool, about=describe_call(event.given))
            case events.ToolEnded() if event.call in self.open:
                state = CallState.OK if event.ok else CallState.FAILED
                yield self._end_call(event.call, state, event)
            case events.Denied():
                yield from self._deny(event)
            case events.Consumed():
                self._sum.add(event)
            case events.Finished():
                self._sum.add(event)
                self._end = self._end if self._end is not None and not self._end.ok else event
            case events.WentOn():
                self._end = None
            case events.Limited() | events.Retried() | events.Noted():
                yield event

    def _say(self, event: events.Said) -> Iterator[Item]:
        """Say whole messages; one in pieces when it is over, or long enough."""
        if event.piece and len(self._piece) < MESSAGE_CHARS:
            self._piece += event.text
            return
        yield from self._flush()
        yield from self._say_text(event.text)

    def _flush(self) -> Iterator[Item]:
        text, self._piece = self._piece, ""
        yield from self._say_text(text)

    def _say_text(self, text: str) -> Iterator[Item]:
        if not text.strip():
            return
        self._said = text.strip()
        report = decode_line(text.encode("utf-8", "replace"))
        yield events.Said(text=text) if report is None else Reported(report=report)

    def _deny(self, event: events.Denied) -> Iterator[Item]:
        if event.call and event.call in self._denied:
            return
        self._denied.add(event.call)
        if event.call in self.open:
            yield self._end_call(event.call, CallState.DENIED, why=event.why)
        else:
            yield CallEnded(tool=event.tool, state=CallState.DENIED, about=event.asked, why=event.why)

    def _end_call(self, call: str, state: CallState, event: events.ToolEnded | None = None, why: str = "") -> CallEnded:
        used = self.open.pop(call)
        ended_us = event.at_us if event is not None else None
        took_s = max(0, ended_us - used.at_us) / US if ended_us is not None and used.at_us is not None else None
        size = event.result_bytes if event is not None else None
        about = describe_call(used.given)
        return CallEnded(tool=used.tool, state=state, about=about, took_s=took_s, result_bytes=size, why=why)

    def _say_end(self) -> Iterator[Item]:
        end, self._end, self._ended = self._end, None, True
        assert end is not None
        message = "" if end.message.strip() == self._said else end.message
        if end.report is not None:
            yield Reported(report=end.report)
        elif end.ok:
            yield from self._say_text(message)
        whole = self._agent is not None and self._agent.cumulative and self._sum.total is not None
        yield WorkEnded(ok=end.ok, message="" if end.ok else message, usage=self.usage, whole_session=whole)


def describe_call(given: dict[str, Any]) -> str:
    """Return the argument that says what a tool is used on, in one line; else the first text among them."""
    named = (text_at(given, name) for name in _SUBJECTS)
    texts = (value for value in given.values() if isinstance(value, str))
    found = next((text for text in (*named, *texts) if text.strip()), "")
    return " ".join(found.split())


def _recognize(document: dict[str, Any]) -> CliAgent | None:
    for name in CLIENTS:
        agent = find_agent(name)
        if isinstance(agent, CliAgent) and agent.opens(document):
            return agent
    return None
