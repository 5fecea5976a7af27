"""The door of the MCP server: a person's chat, which has the key, may use it, and no agent of a run, whatever it has found.

Over HTTP a page of somebody else, opened on the same machine, can send requests, too: the Host has to be ours, and no Origin but
our own is taken. An agent that starts the server, or reaches it, is refused, and the journal of its run says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_orchestrator.beneath import open_folder, write_new
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.config import Settings, data_folder
from agent_orchestrator.core.ids import EffectId, run_of
from agent_orchestrator.core.inputs import Instruct
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.sender import find_launch, find_sender
from agent_orchestrator.errors import FromLaunch, Refused
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.intruders import refuse_launch
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.listener import OwnNames

PATH = "/mcp"
KEY_BYTES = 32
UNAUTHORIZED = 401
KEY_FILE_BYTES_MAX = 1024


class ChatDoor(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for one server."""

    names: OwnNames
    key: str
    find_launch: Callable[[tuple[str, int]], str | None]
    """Finds the launch that the program at the other end of a connection belongs to."""
    refuse_agent: Callable[[str], str]
    """Journals that an agent came, and says why it may not pass."""


class ChatGuard:
    """Refuses what may not pass, before anything else sees it."""

    def __init__(self, app: ASGIApp, door: ChatDoor) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        app = self._app
        if scope["type"] != "lifespan":
            why = await self._judge(scope) if scope["type"] == "http" else (403, "foreign", "There are no web sockets here.")
            app = refuse(*why) if why is not None else app
        await app(scope, receive, send)

    async def _judge(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return why a request may not pass; None where it may."""
        door, headers = self._door, Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not door.names.has(hosts[0]):
            return 421, "host", "This server does not go by that name."
        origins = headers.getlist("origin")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return 403, "foreign", "Another page sent this."
        if scope["path"] != PATH:
            return 404, "unknown", f"The server is at {PATH}."
        if not is_key(headers.getlist("authorization"), door.key):
            return (
                UNAUTHORIZED,
                "locked",
                "The key is missing or wrong: send the one that `orc mcp --http` printed, as a bearer token.",
            )
        launch = await asyncio.to_thread(door.find_launch, scope["client"]) if scope.get("client") else None
        return (403, "launch", await asyncio.to_thread(door.refuse_agent, launch)) if launch is not None else None


def refuse(status: int, code: str, message: str) -> JSONResponse:
    """Return why a request may not pass, as an answer."""
    headers = {"WWW-Authenticate": "Bearer"} if status == UNAUTHORIZED else None
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def is_key(given: list[str], key: str) -> bool:
    """Tell whether a request's Authorization is the key, as a bearer token."""
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), key.encode())


def read_key(settings: Settings) -> str:
    """Return the key of this user's servers, made when there is none: a client that was given it once may come again."""
    folder = data_folder(settings)
    if folder is None:
        return secrets.token_urlsafe(KEY_BYTES)
    file = folder / "mcp" / "key"
    with contextlib.suppress(OSError):
        if key := read_bounded(file, KEY_FILE_BYTES_MAX).decode("ascii", "replace").strip():
            return key
    key = secrets.token_urlsafe(KEY_BYTES)
    try:
        _keep(file, key)
    except FileExistsError:  # Another server of this user has just made one.
        return read_key(settings)
    except OSError:
        pass  # On a full disk it is valid until the server ends.
    return key


def _keep(file: Path, key: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = f".{file.name}.{os.getpid()}"
    with open_folder(file.parent, file.parent) as folder:
        write_new(folder, draft, f"{key}\n".encode("ascii"), 0o600)
        try:
            os.link(draft, file.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(draft, dir_fd=folder)


def refuse_inside(settings: Settings) -> None:
    """Raise Refused where an agent of a run starts the server."""
    launch = find_launch(settings.folder, settings.environ)
    if launch is not None:
        raise Refused(why=refuse_agent(settings, launch))


def refuse_agent(settings: Settings, launch: str) -> str:
    """Journal in an agent's own run that it came to the server, and return why it may not use it."""
    with Orchestrator(settings=settings, surface=Surface.MCP) as orchestrator:
        run = orchestrator.known(run_of(EffectId(launch)))
        if run is None:
            return f"Agents may not direct runs: this came from the launch {launch}."
        sender = find_sender(settings.folder, settings.environ, Surface.MCP)
        who = msgspec.structs.replace(sender, launch=launch)
        try:
            refuse_launch(orchestrator, run, Instruct(id=new_id(), what="mcp", who=who))
        except FromLaunch as error:
            return str(error)
