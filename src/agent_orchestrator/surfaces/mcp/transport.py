"""The two ways to the MCP server: the standard streams of a program that a client started, and HTTP with a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from agent_orchestrator.config import Settings, is_debugging
from agent_orchestrator.engine.peers import find_peer_launch
from agent_orchestrator.surfaces.listener import Address, bind_listener, names_of, shown_host
from agent_orchestrator.surfaces.mcp.door import PATH, ChatDoor, ChatGuard, read_key, refuse_agent, refuse_inside
from agent_orchestrator.surfaces.mcp.server import make_server

PORT = 7430
GRACE_S = 1


class ChatAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is about to answer."""

    url: str
    key: str
    """To be sent as a bearer token."""
    host: str
    port: int


def serve_streams(settings: Settings, *, allow_approve: bool) -> None:
    """Serve the client at the other end of the standard streams, until it closes them."""
    refuse_inside(settings)
    asyncio.run(make_server(settings, allow_approve=allow_approve).run_stdio_async())


def serve_http(settings: Settings, address: Address, *, allow_approve: bool, announce: Callable[[ChatAddress], None]) -> None:
    """Serve clients that have the key until Ctrl-C; `announce` is told the address once the socket takes requests."""
    refuse_inside(settings)
    server = make_server(settings, allow_approve=allow_approve)
    # The SDK's own check of names knows the loopback alone: ours stands before it, wherever the server listens.
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False)
    )
    listener = bind_listener(address, PORT)
    host, port = address.host, listener.getsockname()[1]
    door = ChatDoor(
        names=names_of(host, port),
        key=read_key(settings),
        find_launch=partial(find_peer_launch, [settings.folder], port=port),
        refuse_agent=partial(refuse_agent, settings),
    )
    options = uvicorn.Config(
        ChatGuard(app, door),
        loop="asyncio",
        http="h11",
        lifespan="on",
        access_log=False,
        log_level="error" if is_debugging(settings.environ) else "critical",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    try:
        announce(ChatAddress(url=f"http://{shown_host(host)}:{port}{PATH}", key=door.key, host=host, port=port))
        asyncio.run(uvicorn.Server(options).serve([listener]))
    except KeyboardInterrupt:
        pass  # The way in which people end it.
    finally:
        listener.close()
