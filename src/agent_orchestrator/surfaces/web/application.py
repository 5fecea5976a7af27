"""The routes of the server, and the files of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from agent_orchestrator.errors import OrcError
from agent_orchestrator.surfaces.web.answers import PageFault, answer, answer_bug, answer_error, answer_fault
from agent_orchestrator.surfaces.web.guard import LAUNCH, LOCKED, Door, Guard
from agent_orchestrator.surfaces.web.jobs import Jobs
from agent_orchestrator.surfaces.web.overview_routes import OverviewRoutes
from agent_orchestrator.surfaces.web.repositories import Repositories
from agent_orchestrator.surfaces.web.run_routes import RunRoutes
from agent_orchestrator.surfaces.web.stream import Hub

STATIC = Path(__file__).parent / "static"
COMPRESSED_FROM_BYTES = 1024


class Site(NamedTuple):
    """All that the routes work with."""

    repositories: Repositories
    door: Door
    make_link: Callable[[str], str]
    """Makes a link of a key."""


def make_application(site: Site, hub: Hub) -> ASGIApp:
    """Return the server as an ASGI application."""
    door = _DoorRoutes(site)
    every = OverviewRoutes(hub, site.door)
    one = RunRoutes(hub, Jobs(hub.publish))
    run = "/api/runs/{key}"
    launch = run + "/launches/{effect:path}"
    routes: list[BaseRoute] = [
        *(Route(path, endpoint) for path, endpoint in every.routes()),
        Route("/api/links", door.link, methods=["POST"]),
        *(Route(run + path, endpoint) for path, endpoint in one.routes()),
        Route(launch + "/output", one.output),
        Route(launch + "/raw", one.raw),
        Route(launch, one.launch),
        Route(run + "/directives", one.direct, methods=["POST"]),
        Route("/api/{rest:path}", door.nowhere, methods=["GET", "POST"]),
        Mount("/static", GZipMiddleware(_Files(directory=STATIC), COMPRESSED_FROM_BYTES)),
        Route("/{rest:path}", door.page),
    ]
    handlers: dict[Any, Any] = {PageFault: answer_fault, OrcError: answer_error, Exception: answer_bug}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), site.door)


class _Files(StaticFiles):
    def file_response(self, *given: Any, **named: Any) -> Response:
        """Return a file of the page; a browser asks whether it is still the same one."""
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


class _DoorRoutes:
    """The page itself, and the links that lead to it."""

    def __init__(self, site: Site) -> None:
        self._door, self._make_link = site.door, site.make_link

    async def page(self, request: Request) -> Response:
        """Answer every address of the page with its one file; a key in it is taken for a session."""
        key = request.query_params.get("key")
        if key is None or request.method != "GET":
            return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})
        session = self._door.sessions.redeem(key)
        if session is None:
            raise PageFault(401, "locked", f"This link was used already, or is not one of this server. {LOCKED}")
        place = request.url.path.replace("\\", "/").lstrip("/")
        response = RedirectResponse(f"/{place}#token={session.token}", 303, {"Cache-Control": "no-store"})
        response.set_cookie(self._door.cookie, session.cookie, httponly=True, samesite="strict", path="/")
        return response

    async def link(self, request: Request) -> Response:
        """Make a link for another device; raise a PageFault for an agent, which would be one."""
        if request.scope.get(LAUNCH) is not None:
            raise PageFault(403, "launch", f"Agents get no links: this came from launch {request.scope[LAUNCH]}.")
        return answer(request, {"url": self._make_link(self._door.sessions.make_key())})

    async def nowhere(self, request: Request) -> Response:
        """Answer an address that there is not."""
        raise PageFault(404, "unknown", f"There is nothing at {request.url.path}.")
