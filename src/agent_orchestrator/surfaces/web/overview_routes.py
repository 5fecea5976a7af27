"""The routes about all runs: the list, what needs a person, limits, figures, the report, and the stream of events."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_orchestrator.errors import OrcError, Unavailable
from agent_orchestrator.runs.digest import make_digest
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.cli.commands.report import read_since
from agent_orchestrator.surfaces.web.analytics import count_outcomes
from agent_orchestrator.surfaces.web.answers import PageFault, answer
from agent_orchestrator.surfaces.web.guard import Door
from agent_orchestrator.surfaces.web.overview import list_needs, list_runs, list_windows, show_day, show_limits
from agent_orchestrator.surfaces.web.repositories import Repository, describe
from agent_orchestrator.surfaces.web.sizes import ChangeSizes
from agent_orchestrator.surfaces.web.stream import Hub
from agent_orchestrator.surfaces.web.workers import list_workers
from agent_orchestrator.systems import SYSTEMS
from agent_orchestrator.version import __version__

LISTED = 100
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Endpoint = Callable[[Request], Awaitable[Response]]


class OverviewRoutes:
    """Answers about all repositories together."""

    def __init__(self, hub: Hub, door: Door) -> None:
        self._hub, self._door = hub, door
        self._sizes = ChangeSizes(hub.repositories, lambda: hub.publish("needs", {}))

    def routes(self) -> list[tuple[str, Endpoint]]:
        """Return the addresses, each with its answer."""
        return [
            ("/api/session", self.session),
            ("/api/runs", self.runs),
            ("/api/needs", self.needs),
            ("/api/limits", self.limits),
            ("/api/workers", self.workers),
            ("/api/analytics", self.analytics),
            ("/api/outcomes", self.outcomes),
            ("/api/report", self.report),
            ("/api/events", self.events),
        ]

    async def session(self, request: Request) -> Response:
        """Tell what this server shows."""
        repos = [{"repo": one.name, **await one.read(describe)} for one in self._hub.repositories.all]
        now_us = await self._hub.repositories.all[0].read(lambda orchestrator: orchestrator.clock.now_us())
        facts = {"version": __version__, "read_only": self._door.read_only, "user": getpass.getuser(), "now_us": now_us}
        return answer(request, {**facts, "systems": SYSTEMS, "repos": repos})

    async def runs(self, request: Request) -> Response:
        """List all runs; the place is that before the first was read, so that nothing is missed after it."""
        place = await self._place()
        runs, windows, problems = [], [], []
        day: dict[str, Any] | None = None
        for one in self._hub.repositories.all:
            try:
                runs += await one.read(list_runs, one)
                if await one.read(_has_store):
                    windows += await one.read(list_windows, one)
                    day = _add_day(day, await one.read(show_day))
            except Unavailable as error:
                problems.append({"repo": one.name, "message": str(error)})
        return answer(request, {"at": place, "runs": runs, "windows": windows, "day": day, "problems": problems})

    async def needs(self, request: Request) -> Response:
        """List what runs ask of people."""
        place = await self._place()
        found = [need for one in self._hub.repositories.all for need in await one.read(list_needs, one, one.watched)]
        return answer(request, {"at": place, "needs": self._sizes.fill(found)})

    async def limits(self, request: Request) -> Response:
        """Show budgets and rate limits, by repository."""
        repos = [await one.read(show_limits, one, one.watched) for one in self._hub.repositories.all]
        return answer(request, {"repos": repos})

    async def workers(self, request: Request) -> Response:
        """Show who drives runs on which host, and what waits in queues, by the database that repositories share."""
        found = [await one.read(list_workers) for one in self._hub.repositories.all]
        stores = {one["store"]: one for one in found if one is not None}
        return answer(request, {"stores": list(stores.values())})

    async def analytics(self, request: Request) -> Response:
        """Show figures of launches since a time, by repository."""
        system = request.query_params.get("system") or None
        if system is not None and system not in SYSTEMS:
            raise PageFault(400, "invalid", f"There is no mode {system[:100]!r}; there are: {', '.join(SYSTEMS)}.")
        since = request.query_params.get("since") or "30d"

        def read(orchestrator: Orchestrator, one: Repository) -> dict[str, Any]:
            since_us = read_since(since, orchestrator.clock.now_us())
            return {"repo": one.name, **one.analytics.read(orchestrator, since_us, system)}

        return answer(request, {"repos": [await one.read(read, one) for one in self._hub.repositories.all]})

    async def outcomes(self, request: Request) -> Response:
        """Show figures of units by their records; there may be very many files, so another thread reads them."""
        since = request.query_params.get("since") or "30d"

        def read(one: Repository) -> list[dict[str, Any]]:
            with one.make_orchestrator() as orchestrator:
                return count_outcomes(orchestrator, read_since(since, orchestrator.clock.now_us()))

        repos = [{"repo": one.name, "systems": await asyncio.to_thread(read, one)} for one in self._hub.repositories.all]
        return answer(request, {"repos": repos})

    async def report(self, request: Request) -> Response:
        """Tell what happened since a time, by repository."""
        since = request.query_params.get("since") or "24h"

        def read(orchestrator: Orchestrator) -> Any:
            since_us = read_since(since, orchestrator.clock.now_us())
            return msgspec.to_builtins(make_digest(orchestrator, since_us, LISTED))

        repos = [{"repo": one.name, **await one.read(read)} for one in self._hub.repositories.all]
        return answer(request, {"repos": repos})

    async def events(self, request: Request) -> Response:
        """Stream what happens, from the place that the reader brings."""
        at = request.headers.get("last-event-id") or request.query_params.get("at", "")
        frames = self._hub.stream(request.query_params.get("topics", "runs"), at)
        return StreamingResponse(frames, media_type="text/event-stream", headers=STREAM)

    async def _place(self) -> str:
        try:
            return await self._hub.place()
        except OrcError:
            return ""


def _has_store(orchestrator: Orchestrator) -> bool:
    return orchestrator.has_store


def _add_day(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Return the days of two repositories together; a limit that one of them has not, nobody has."""
    if one is None:
        return other
    added: dict[str, Any] = {}
    for part in ("spent", "reserved", "limit"):
        pairs = {name: (one[part][name], other[part][name]) for name in ("cost_usd", "tokens")}
        added[part] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
    return added
