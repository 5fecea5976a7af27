"""The routes about one run: its page, its launches while they write, its changes, and what people tell it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_orchestrator.core.ids import launch_folder
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import UnknownRun
from agent_orchestrator.runs.digest import make_digest
from agent_orchestrator.surfaces.output import LaunchOutput, StreamName, read_range
from agent_orchestrator.surfaces.web import run_page
from agent_orchestrator.surfaces.web.answers import PageFault, answer
from agent_orchestrator.surfaces.web.diffs import show_diff
from agent_orchestrator.surfaces.web.directives import PageSent, read_directive, refuse_agent, send
from agent_orchestrator.surfaces.web.guard import LAUNCH
from agent_orchestrator.surfaces.web.jobs import Jobs, describe_job
from agent_orchestrator.surfaces.web.launches import STREAMS, find_effect, show_launch
from agent_orchestrator.surfaces.web.overview_routes import STREAM, Endpoint
from agent_orchestrator.surfaces.web.repositories import Looked
from agent_orchestrator.surfaces.web.stream import Hub, sse_frames

OUTPUT_LOOK_S = 0.2
ALIVE_LOOKS = 75


class RunRoutes:
    """Answers about one run."""

    def __init__(self, hub: Hub, jobs: Jobs) -> None:
        self._hub, self._jobs = hub, jobs
        self._repositories = hub.repositories

    def routes(self) -> list[tuple[str, Endpoint]]:
        """Return the addresses below a run's, each with its answer; those that take a row show the run as of it."""
        shown: dict[str, Callable[[Looked], dict[str, Any]]] = {
            "": lambda one: run_page.show_run(one.orchestrator, one.repository, one.watched, one.moment),
            "/graph": lambda one: run_page.show_graph(one.moment),
            "/documents": lambda one: run_page.show_documents(one.moment, one.orchestrator.clock.now_us()),
            "/iterations": lambda one: run_page.show_iterations(one.moment),
            "/usage": lambda one: run_page.show_usage(one.orchestrator, one.moment),
            "/history": lambda one: one.watched.read_history(one.orchestrator).facts(),
            "/messages": lambda one: run_page.show_messages(one.orchestrator, one.moment.run),
            "/report": lambda one: msgspec.to_builtins(make_digest(one.orchestrator, 0, 1, one.moment.run)),
        }
        return [
            *((path, self._show(show)) for path, show in shown.items()),
            ("/units/{unit}", self.unit),
            ("/journal", self.journal),
            ("/diff", self.diff),
            ("/jobs/{job}", self.job),
        ]

    def _show(self, show: Callable[[Looked], dict[str, Any]]) -> Endpoint:
        async def respond(request: Request) -> Response:
            place = await self._hub.place()
            facts = await self._repositories.look(request.path_params["key"], show, _read_number(request, "row"))
            return answer(request, {"at": place, **facts})

        return respond

    async def unit(self, request: Request) -> Response:
        """Show a unit with its launches."""
        unit = request.path_params["unit"]
        show = self._show(lambda one: run_page.show_unit(one.orchestrator, one.moment, unit))
        return await show(request)

    async def launch(self, request: Request) -> Response:
        """Show a launch with its prompt, its feedback and its report."""
        effect = request.path_params["effect"]
        return await self._show(lambda one: show_launch(one.orchestrator, one.moment, effect))(request)

    async def journal(self, request: Request) -> Response:
        """Show facts of the journal in words."""
        after, before = _read_number(request, "after") or 0, _read_number(request, "before")
        limit = _read_number(request, "limit") or 200
        return await self._show(lambda one: run_page.show_journal(one.orchestrator, one.moment.run, after, before, limit))(
            request
        )

    async def diff(self, request: Request) -> Response:
        """Show the changes; git may take its time, so another thread asks it."""
        repository, run = self._repositories.find(request.path_params["key"])
        unit = request.query_params.get("unit") or None

        def read() -> dict[str, Any]:
            with repository.make_orchestrator() as orchestrator:
                return show_diff(orchestrator, run, unit)

        return answer(request, await asyncio.to_thread(read))

    async def job(self, request: Request) -> Response:
        """Show how a job stands."""
        repository, run = self._repositories.find(request.path_params["key"])
        name = request.path_params["job"]
        job = self._jobs.find(repository, name) if name.isalnum() else None
        if job is None or job.run != run:
            raise PageFault(404, "unknown", f"There is no job {name[:100]!r}.")
        return answer(request, describe_job(job))

    async def direct(self, request: Request) -> Response:
        """Send a directive, or start the job that does it."""
        repository, run = self._repositories.find(request.path_params["key"])
        said = read_directive(await request.body())
        launch = request.scope.get(LAUNCH)
        if launch is None and (job := self._jobs.find(repository, said.id)) is not None:
            return answer(
                request, _sent(said.id, said.directive, PageSent(message="That was begun before."), describe_job(job)), 202
            )

        def work() -> PageSent:
            with repository.make_orchestrator() as orchestrator:
                if launch is not None:
                    refuse_agent(orchestrator, run, said, launch)
                return send(orchestrator, run, said)

        sent = await asyncio.to_thread(work)
        begun = None
        if sent.job is not None:
            begun = describe_job(await self._jobs.start(repository, run, said.directive, said.id, sent.job))
        return answer(request, _sent(said.id, said.directive, sent, begun), 202)

    async def raw(self, request: Request) -> Response:
        """Show a range of what a launch wrote."""
        stream = request.query_params.get("stream", "out")
        if stream not in STREAMS:
            raise PageFault(400, "invalid", "The stream is out or err.")
        effect, begin, count = request.path_params["effect"], _read_number(request, "from") or 0, _read_number(request, "bytes")

        def read(one: Looked) -> dict[str, Any]:
            settings = one.orchestrator.settings
            path = settings.folder / "launches" / launch_folder(find_effect(one.moment, effect)) / stream
            return read_range(path, begin, count or 65_536, Redactor(settings.secrets()))

        return answer(request, await self._repositories.look(request.path_params["key"], read))

    async def output(self, request: Request) -> Response:
        """Stream what a launch writes."""
        stream = request.query_params.get("stream", "both")
        if stream not in (*STREAMS, "both"):
            raise PageFault(400, "invalid", "The stream is out, err or both.")
        key, effect = request.path_params["key"], request.path_params["effect"]
        place = request.headers.get("last-event-id", "")

        def begin(one: Looked) -> LaunchOutput:
            settings = one.orchestrator.settings
            folder = settings.folder / "launches" / launch_folder(find_effect(one.moment, effect))
            choices = one.moment.folded.state.spec.choices
            return LaunchOutput(folder, cast(StreamName, stream), choices, Redactor(settings.secrets()), place)

        output = await self._repositories.look(key, begin)
        return StreamingResponse(self._follow(key, effect, output), media_type="text/event-stream", headers=STREAM)

    async def _follow(self, key: str, effect: str, output: LaunchOutput) -> AsyncIterator[bytes]:
        first, looks, shown = not output.resumed, 0, None
        yield b"retry: 1000\n\n"
        while not self._hub.closing:
            ended = await self._ending(key, effect)
            if await asyncio.to_thread(output.is_anew):
                await asyncio.to_thread(output.begin_again)
                yield sse_frames([("", "reset", {})])
                first = True
            lines = await asyncio.to_thread(output.close if ended is not None else output.read)
            if lines or first:
                yield sse_frames([(output.place, "lines", {"lines": lines, "cut": output.cut and first})])
                first = False
            if ended is not None:
                yield sse_frames([(output.place, "end", ended)])
                return
            if (pending := output.pending()) != shown:
                shown = pending
                yield sse_frames([(output.place, "pending", pending)])
            looks += 1
            if looks % ALIVE_LOOKS == 0:
                yield b": still here\n\n"
            await asyncio.sleep(OUTPUT_LOOK_S)

    async def _ending(self, key: str, effect: str) -> dict[str, Any] | None:
        """Return how a launch ended; None as long as it is wanted."""

        def read(one: Looked) -> dict[str, Any] | None:
            if one.moment.folded.state.doing.wants(find_effect(one.moment, effect)):
                return None
            facts = show_launch(one.orchestrator, one.moment, effect)
            return {"exit_code": facts["exit_code"], "failure": facts["failure"]}

        try:
            return await self._repositories.look(key, read)
        except (UnknownRun, PageFault):
            return {"exit_code": None, "failure": "gone"}


def _sent(directive_id: str, directive: str, sent: PageSent, job: dict[str, Any] | None) -> dict[str, Any]:
    taken, owner = (sent.sent.taken, sent.sent.owner) if sent.sent is not None else (False, None)
    facts = {"id": directive_id, "directive": directive, "taken": taken, "driven_by": owner}
    return {**facts, "message": sent.message, "job": job}


def _read_number(request: Request, name: str) -> int | None:
    """Return a number of the address; raise a PageFault for anything else."""
    given = request.query_params.get(name)
    if not given:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise PageFault(400, "invalid", f"{name} is a number.")
    return int(given)
