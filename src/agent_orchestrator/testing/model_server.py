"""A scripted model on loopback, so that real agent CLIs can be run in tests without a model, a key or a network.

A lane is a path: `server.lane("fix", [Write(…), Reply(…)])` gives the base URL of a model that does just that, one
behaviour per call, the last one for ever. It speaks Anthropic messages, OpenAI responses and Gemini, streamed and whole.
A call that offers no tools is one on the side, for a title or the like: it is answered and is no part of the script.
Schemas are enforced as the services do: one that they would not take is refused, and an answer that a model could not have
given under its schema is a fault of the script: the call is refused and the server raises at its end.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.testing.model_wire import (
    Block,
    Events,
    asked_schema,
    gemini_whole,
    message_events,
    message_whole,
    offered,
    refused_schema,
    response_events,
)
from agent_orchestrator.testing.strict_schema import answer_faults, filled


class Say(msgspec.Struct, frozen=True):
    """A text that ends the turn."""

    text: str


class Write(msgspec.Struct, frozen=True):
    """A file written with the client's own tool."""

    path: str
    content: str


class Shell(msgspec.Struct, frozen=True):
    """A command run with the client's own tool."""

    command: str


class Find(msgspec.Struct, frozen=True):
    """Tools of an MCP server that are looked for: clients show the model only their names until it does."""

    server: str
    tools: tuple[str, ...]


class Use(msgspec.Struct, frozen=True):
    """A tool of an MCP server that is called."""

    server: str
    tool: str
    values: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True):
    """A structured answer that ends the turn; properties that may be null may be left out."""

    report: dict[str, Any]
    fits: bool = True
    """False for an answer that breaks its schema: possible where the schema is a tool's, which only the client enforces."""


class Refuse(msgspec.Struct, frozen=True):
    """An HTTP error for an answer."""

    status: int
    message: str = "scripted"
    retry_after_s: int | None = None
    headers: dict[str, str] = {}


class Broken(msgspec.Struct, frozen=True):
    """A stream that begins with text; then it is `malformed`, `cut` off, or `stalls`. `silent` never begins."""

    how: str


class Held(msgspec.Struct, frozen=True):
    """A behaviour that waits until the lane is let go."""

    then: Say | Write | Shell | Find | Use | Reply


Behaviour = Say | Write | Shell | Find | Use | Reply | Refuse | Broken | Held

ASIDE = Say("On the side")
GEMINI = (":streamGenerateContent", ":generateContent")
CHARGED = ("message_delta", "response.completed")
"""The events that say what a call took."""
PATHS = ("/v1/messages", "/responses", *GEMINI)

_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Lane:
    """The conversation of one client: the behaviours, what it asked and what it was charged."""

    def __init__(self, script: Sequence[Behaviour]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self.let_go = threading.Event()
        self.requests: list[dict[str, Any]] = []
        self.charged = Usage(input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
        """What complete answers on this lane cost in tokens, all together."""
        self.faults: list[str] = []
        """Answers of the script that no model could have given."""

    def next(self, request: dict[str, Any]) -> tuple[Behaviour, int]:
        """Return the behaviour for this call, and its number."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            return self._script[min(number, len(self._script)) - 1], number

    def fitting(self, answer: Reply, request: dict[str, Any]) -> Reply | Refuse:
        """Return the answer in full, or a refusal: one that its schema does not allow is noted, so that the test cannot pass."""
        schema = asked_schema(request)
        if schema is None:
            return answer
        report = filled(answer.report, schema) if answer.fits else answer.report
        faults = answer_faults(report, schema)
        if faults and (answer.fits or "text" in request):
            self.faults.append(f"the scripted answer breaks its schema: {'; '.join(faults)}")
            return Refuse(400, self.faults[-1])
        return Reply(report)

    def release(self) -> None:
        """Let go of what is held."""
        self.let_go.set()

    def charge(self, usage: Usage, *, back: bool = False) -> None:
        """Count an answer before it is sent, so that the client that has it finds it counted. `back` takes one back."""
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        with self._lock:
            sign = -1 if back else 1
            sums = {name: (getattr(self.charged, name) or 0) + sign * (getattr(usage, name) or 0) for name in names}
            self.charged = typed.convert(sums, Usage)


class ModelServer:
    """Use it as a context manager; it listens on a free port of 127.0.0.1 and nowhere else."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.closing = threading.Event()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def lane(self, name: str, script: Sequence[Behaviour]) -> str:
        """Return the base URL of a model that behaves so."""
        return self.add(name, Lane(script))

    def add(self, name: str, lane: Lane) -> str:
        """Return the base URL of a lane that was made elsewhere, such as a cast."""
        self.lanes[name] = lane
        return f"http://127.0.0.1:{self._http.server_port}/{name}"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        for lane in self.lanes.values():
            lane.release()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        faults = [f"lane {name}: {fault}" for name, lane in self.lanes.items() for fault in lane.faults]
        assert not faults, "\n".join(faults)


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a client that went away."""


class _Call(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "scripted-model"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the parent's
        """Say nothing."""

    def do_GET(self) -> None:
        """Refuse: there is nothing to get; some clients try a websocket first."""
        self._send(426 if self.headers.get("upgrade") else 404, {"error": {"message": "nothing here"}})

    def do_HEAD(self) -> None:
        """Refuse as for GET."""
        self._send(404, {})

    def do_POST(self) -> None:
        """Answer one call of the model."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        model = cast(_Http, self.server).model
        lane = model.lanes.get(path.split("/")[1])
        if lane is None or not path.endswith(PATHS):
            self._send(404, {"error": {"message": f"no {path}"}})
            return
        request: dict[str, Any] = json.loads(body or b"{}")
        if (refusal := refused_schema(request)) is not None:
            self._send(400, refusal)
            return
        if not offered(request):
            self._answer(Lane([ASIDE]), request, ASIDE, 1, path)
            return
        behaviour, number = lane.next(request)
        if isinstance(behaviour, Held):
            lane.let_go.wait()
            behaviour = behaviour.then
        if isinstance(behaviour, Reply):
            behaviour = lane.fitting(behaviour, request)
        match behaviour:
            case Refuse():
                self._refuse(behaviour)
            case Broken(how="silent"):
                model.closing.wait()
                self._hang_up()
            case _:
                self._answer(lane, request, behaviour, number, path)

    def _answer(self, lane: Lane, request: dict[str, Any], behaviour: Behaviour, number: int, path: str) -> None:
        messages = path.endswith("/v1/messages")
        # Odd numbers, so that a sum that is right by accident is unlikely.
        usage = Usage(input_tokens=1000 + 7 * number, output_tokens=31 + number, cache_read_tokens=503, cache_write_tokens=0)
        if messages:
            usage = msgspec.structs.replace(usage, cache_write_tokens=101)
        block = _block(behaviour, offered(request))
        broken = behaviour.how if isinstance(behaviour, Broken) else ""
        if path.endswith(GEMINI):
            lane.charge(usage)
            self._send_gemini(gemini_whole(request, block, usage), stream=path.endswith(GEMINI[0]))
            return
        if broken and not request.get("stream"):
            self._hang_up()  # some clients ask again without a stream when one broke
            return
        if not request.get("stream"):
            lane.charge(usage)
            self._send(200, message_whole(request, block, usage))
            return
        events = message_events if messages else response_events
        self._stream(events(request, block, usage), broken, lane, usage)

    def _send_gemini(self, answer: dict[str, Any], *, stream: bool) -> None:
        if not stream:
            self._send(200, answer)
            return
        data = f"data: {json.dumps(answer)}\r\n\r\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Events, broken: str, lane: Lane, usage: Usage) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        event = ""
        try:
            for event, said in events:
                if event in CHARGED:
                    lane.charge(usage)
                self._chunk(f"event: {event}\ndata: {json.dumps(said)}\n\n")
                if broken and event in ("content_block_delta", "response.output_text.delta"):
                    self._break(event, broken)
                    return
            event = ""
            self._chunk("")
        except OSError:
            # One that has spent its budget hangs up as soon as it knows what the call took.
            self.close_connection = True
            if event in CHARGED:
                lane.charge(usage, back=True)

    def _break(self, event: str, how: str) -> None:
        if how == "malformed":
            self._chunk(f'event: {event}\ndata: {{"type":"{event}","ind\n\n')
            self._chunk("")
            return
        if how == "stalls":
            cast(_Http, self.server).model.closing.wait()
        self._hang_up()

    def _refuse(self, behaviour: Refuse) -> None:
        kind = _ERRORS.get(behaviour.status, "overloaded_error" if behaviour.status == 529 else "api_error")
        wait = dict(behaviour.headers)
        if behaviour.retry_after_s is not None:
            wait["retry-after"] = str(behaviour.retry_after_s)
        self._send(behaviour.status, {"type": "error", "error": {"type": kind, "message": behaviour.message, "code": kind}}, wait)

    def _send(self, status: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _block(behaviour: Behaviour, tools: dict[str, str]) -> Block:
    """Return the model's words in terms of the tools that this client offers."""
    match behaviour:
        case Write(path, content) if "Write" in tools:
            return Block(tool="Write", values={"file_path": path, "content": content})
        case Write(path, content) if "write_file" in tools:
            return Block(tool="write_file", values={"file_path": path, "content": content})
        case Write(path, content) if "write" in tools:
            return Block(tool="write", values={"filePath": path, "content": content})
        case Write(path, content) if tools.get("apply_patch") == "custom":
            lines = "".join(f"+{line}\n" for line in content.splitlines())
            return Block(tool="apply_patch", text=f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch", custom=True)
        case Write(path, content):
            return _shell(f"cat > '{path}' <<'END'\n{content}\nEND", tools)
        case Shell(command):
            return _shell(command, tools)
        case Find(server, names) if "ToolSearch" in tools:
            return Block(tool="ToolSearch", values={"query": "select:" + ",".join(f"mcp__{server}__{one}" for one in names)})
        case Find(server, names):
            return Block(tool="tool_search", values={"query": " ".join((server, *names)), "limit": len(names)}, searches=True)
        case Use(server, tool, values) if "tool_search" in tools:
            return Block(tool=tool, namespace=f"mcp__{server}", values=values)
        case Use(server, tool, values):
            named = (one for one in tools if server in one and one.endswith(tool))
            return Block(tool=next(named, f"mcp__{server}__{tool}"), values=values)
        case Reply(report) if "StructuredOutput" in tools:
            return Block(tool="StructuredOutput", values=report)
        case Reply(report):
            return Block(text=json.dumps(report))
        case Say(text):
            return Block(text=text)
    return Block(text="It begins well, and then")


def _shell(command: str, tools: dict[str, str]) -> Block:
    for tool in ("Bash", "bash", "run_shell_command"):
        if tool in tools:
            return Block(tool=tool, values={"command": command, "description": "scripted"})
    return Block(tool="exec_command", values={"cmd": command})
