"""The MCP server for the agents of one run: they note progress, ask people and read what people say. Nothing that judges.

It runs in a thread of the process that drives the run, with a store of its own. What an agent says goes through the inbox into
the journal, signed with the launch whose key came with the request; the answer comes when it is journaled.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import uvicorn
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_orchestrator.core.doing import Steering
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import Saying, Speak
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.engine.peers import find_peer_launch
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.agent_door import PATH, AgentDoor
from agent_orchestrator.runs.follow import LOOK_S, Follower, pause
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

Found = TypeVar("Found")

TEXT_CHARS_MAX = 4_000
WAIT_MAX_S = 50.0
"""Clients give up on a tool after a minute."""
JOURNALED_MAX_S = 30.0
GRACE_S = 1
LAUNCH = "orc.launch"
INSTRUCTIONS = (
    "You work in a run of orc. note_progress tells people how far you are. ask_person asks them something: they may be away, so "
    "go on with what does not depend on it; read_feedback returns their words. Nothing here approves or ends your work."
)


HARMLESS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Said of every tool: a client that nobody sits at, such as codex, refuses tools that say nothing of themselves."""


class AgentTools:
    """The tools of a run's agents."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun, stop: threading.Event) -> None:
        self._settings, self._run, self._stop = orchestrator.settings, run, stop
        self._redactor = make_redactor(orchestrator, run)

    async def note_progress(self, text: str, ctx: Context[Any, Request]) -> str:
        """Tell the people who follow this run how far you are, in a sentence; it is journaled."""
        await aside(self._say, find_caller(ctx), Saying.NOTE, text)
        return "It is noted."

    async def ask_person(self, question: str, ctx: Context[Any, Request]) -> str:
        """Ask a person something. It returns at once; their answer comes by read_feedback, or with your next prompt."""
        await aside(self._say, find_caller(ctx), Saying.QUESTION, question)
        return "A person is asked. Go on with what does not depend on it; read_feedback returns the answer once there is one."

    async def read_feedback(self, ctx: Context[Any, Request], wait_s: float = 0.0) -> dict[str, Any]:
        """Read what people have said to you since you began, waiting for it up to wait_s (at most 50)."""
        return {"words": await aside(self._read, find_caller(ctx), max(0.0, min(wait_s, WAIT_MAX_S)))}

    def _read(self, effect: EffectId, wait_s: float) -> list[str]:
        """Wait for words of people for a launch that is at work."""
        with Orchestrator(settings=self._settings, surface=Surface.MCP) as orchestrator:
            follower = Follower(orchestrator, orchestrator.find(self._run.id))
            words: list[Steering] = []
            for _ in range(1 + round(wait_s / LOOK_S)):
                follower.read()
                wanted = follower.state.doing.of(unit_of(effect))
                if not isinstance(wanted, RunAgent) or wanted.id != effect:
                    return []
                if (words := follower.state.doing.words_for(wanted)) or self._stop.is_set():
                    break
                pause()
        if words:
            self._say(effect, Saying.HEARD, "\n".join(one.text for one in words))
        return [one.text for one in words]

    def _say(self, effect: EffectId, saying: Saying, text: str) -> None:
        """Put what an agent says into the inbox, and wait until it is journaled; the same words of a launch count once."""
        text = self._redactor.redact_text(text.strip())[:TEXT_CHARS_MAX]
        if not text:
            raise ToolError("There is nothing to say.")
        name = hashlib.sha256(f"{effect} {saying} {text}".encode()).hexdigest()[:32]
        who = Who(surface=Surface.MCP, launch=effect)
        said = Speak(id=name, effect=effect, saying=saying, text=text if saying is not Saying.HEARD else "", who=who)
        try:
            with Orchestrator(settings=self._settings, surface=Surface.MCP) as orchestrator:
                self._post(orchestrator, said)
        except OrcError as error:
            raise ToolError(str(error)) from None

    def _post(self, orchestrator: Orchestrator, said: Speak) -> None:
        store, run = orchestrator.store, self._run.id
        before = orchestrator.fold(orchestrator.find(run)).seq
        store.post(run, said.id, msgspec.json.encode(said), orchestrator.clock.now_us())
        for _ in range(round(JOURNALED_MAX_S / LOOK_S)):
            if store.posted(run, said.id) or self._stop.is_set():
                break
            pause()
        if not store.posted(run, said.id):
            raise ToolError("Nobody drives the run at the moment: it is told when it goes on.")
        system = find_system(self._run.system)
        for _, _, body in store.rows(run, before):
            for event in decode_events(system, body):
                if isinstance(event, DirectiveRefused) and event.directive == said.id:
                    raise ToolError(f"It was not taken: {event.why}.")


async def aside(function: Callable[..., Found], *given: Any) -> Found:
    """Call a function in a thread that nobody waits for when its agent, or the run, is gone."""
    return await to_thread.run_sync(partial(function, *given), abandon_on_cancel=True)


def find_caller(ctx: Context[Any, Request]) -> EffectId:
    """Return the launch that a request came from."""
    request = ctx.request_context.request
    assert request is not None, "a request comes by HTTP"
    return EffectId(request.scope[LAUNCH])


class KeyGuard:
    """Lets nothing pass but a launch with its key, under our own name."""

    def __init__(self, app: ASGIApp, door: AgentDoor, orchestrator: Orchestrator) -> None:
        self._app, self._door, self._store = app, door, orchestrator.settings.folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass with the launch that it came from, or answer it here."""
        app = self._app
        if scope["type"] == "http":
            status = await self._judge(scope)
            app = app if status is None else PlainTextResponse("It is not for you.", status)
        await app(scope, receive, send)

    async def _judge(self, scope: Scope) -> int | None:
        """Return the status by which a request is refused; None where it may pass."""
        headers, port = Headers(scope=scope), self._door.port
        own = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if headers.getlist("host") not in [[one] for one in own]:
            return 421
        if headers.get("origin") is not None:  # No page has anything to say here.
            return 403
        given = headers.getlist("authorization")
        scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        effect = self._door.find_effect(key.strip()) if scheme.lower() == "bearer" else None
        if effect is None:
            return 401
        # A key that another launch has found does not make it this one; where nothing is known of the other end, the key decides.
        peer = await asyncio.to_thread(find_peer_launch, [self._store], scope["client"], port) if scope.get("client") else None
        if peer is not None and peer != effect:
            return 403
        scope[LAUNCH] = effect
        return None if scope["path"] == PATH else 404


def serve_door(orchestrator: Orchestrator, run: StoredRun, door: AgentDoor, stop: threading.Event) -> None:
    """Serve until `stop` is set."""
    server: MCPServer[Any] = MCPServer("orc_run", instructions=INSTRUCTIONS, log_level="CRITICAL")
    tools = AgentTools(orchestrator, run, stop)
    for tool in (tools.note_progress, tools.ask_person, tools.read_feedback):
        server.add_tool(tool, annotations=HARMLESS)
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False)
    )
    options = uvicorn.Config(
        KeyGuard(app, door, orchestrator),
        loop="asyncio",
        http="h11",
        lifespan="on",
        access_log=False,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    asyncio.run(_serve(uvicorn.Server(options), door, stop))


async def _serve(server: uvicorn.Server, door: AgentDoor, stop: threading.Event) -> None:
    serving = asyncio.create_task(server.serve([door.listener]))
    await asyncio.to_thread(stop.wait)
    server.should_exit = True
    await serving
