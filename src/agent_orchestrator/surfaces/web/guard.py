"""The door of the server: every request is judged here before anything else sees it.

A page of somebody else, opened in the same browser, can send requests to this machine; a program on it can, too. So the
address must be ours (a name that was rebound to us is not), the page must be ours, the browser must have a session, and what
writes must carry the token of the page. `docs/web.md` lists what each rule is for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_orchestrator.surfaces.listener import OwnNames
from agent_orchestrator.surfaces.web.answers import refuse
from agent_orchestrator.surfaces.web.sessions import Sessions

TOKEN_HEADER = "x-orc-token"
LAUNCH = "orc.launch"
"""The launch that a request came from, in its scope: whoever writes refuses it, and the run's journal tells."""
BODY_BYTES_MAX = 256 * 1024
LOCKED = "Open the link that `orc web` printed: this browser has no session, or it is over."
POLICY = "; ".join(
    [
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"),
        *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer, the refused ones included."""


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for one server."""

    sessions: Sessions
    names: OwnNames
    read_only: bool
    find_launch: Callable[[tuple[str, int]], str | None]
    """Finds the launch that the program at the other end of a connection belongs to."""

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: one for each port, because browsers keep cookies by host alone."""
        return f"orc-web-{self.names.port}"


class Guard:
    """Refuses what may not pass, and gives every answer the headers that bind the browser."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] != "http":
            await refuse(403, "foreign", "There are no web sockets here.")(scope, receive, send)
            return
        why = self._judge(scope, Headers(scope=scope))
        if why is None and scope["method"] == "POST":
            scope[LAUNCH] = await self._find_launch(scope)
        app = self._app if why is None else refuse(*why)
        await app(scope, receive, send_bound)

    def _judge(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        """Return why a request may not pass; None where it may."""
        door, method, path = self._door, scope["method"], scope["path"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not door.names.has(hosts[0]):
            return 421, "host", "This server does not go by that name."
        api = path.startswith("/api/")
        # A link in a message opens the page, which has nothing in it: what it loads is asked for by the page itself.
        opened = not api and method in ("GET", "HEAD") and headers.get("sec-fetch-mode", "navigate") == "navigate"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            return 403, "foreign", "Another page sent this."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not opened:
            return 403, "foreign", "Another page sent this."
        if not api:
            return None if method in ("GET", "HEAD") else (405, "invalid", "There is nothing to write to here.")
        cookie = read_cookie(headers, door.cookie)
        if not door.sessions.may_read(cookie):
            return 401, "locked", LOCKED
        if method in ("GET", "HEAD"):
            return None
        return self._judge_write(scope, headers, cookie)

    def _judge_write(self, scope: Scope, headers: Headers, cookie: str) -> tuple[int, str, str] | None:
        door = self._door
        if scope["method"] != "POST":
            return 405, "invalid", "Things are written with POST."
        if not door.sessions.may_write(cookie, headers.get(TOKEN_HEADER, "")):
            return 403, "token", "Only the page itself may write: open the link that `orc web` printed again."
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "not_json", "What is written is JSON."
        if door.read_only:
            return 403, "read_only", "This server only shows: it was started with --read-only."
        length = headers.get("content-length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return 413, "too_large", f"At most {BODY_BYTES_MAX} bytes may be written at once."
        return None

    async def _find_launch(self, scope: Scope) -> str | None:
        """Return the launch that a request to write came from; looking at processes takes its time, so a thread does it."""
        client = scope.get("client")
        return await asyncio.to_thread(self._door.find_launch, (client[0], client[1])) if client else None


def read_cookie(headers: Headers, name: str) -> str:
    """Return the session's cookie of a request; nothing where it has none."""
    try:
        found = SimpleCookie("; ".join(headers.getlist("cookie"))).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""
