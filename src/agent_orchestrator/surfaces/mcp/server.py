"""The MCP server for the chat of a person: tools that look at runs, start them and direct them. None of them judges.

Clients hide the descriptions of tools until one is called for, so that each name has to speak for itself. Every call opens the
store anew, in a thread of its own, and calls what the commands call; an error is the sentence that the command would print.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from agent_orchestrator.config import Settings, is_debugging
from agent_orchestrator.core.inputs import Steer
from agent_orchestrator.core.who import Surface
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.mcp import approval, directives, views
from agent_orchestrator.surfaces.mcp.errors import tell_errors
from agent_orchestrator.surfaces.mcp.program import RunRequest, start_run
from agent_orchestrator.surfaces.mcp.requests import RequestId, RunName, UnitName, name_directive
from agent_orchestrator.version import __version__

WAIT_S, WAIT_MAX_S, PIECE_S = 45.0, 600.0, 2.0
"""Clients give up on a tool after a minute, unless they are told otherwise."""
LOG_CHARS, DIFF_CHARS, CHARS_MAX = 8_000, 20_000, 400_000
INSTRUCTIONS = (
    "orc runs AI coding agents durably in this repository. start_run returns at once: wait_run waits for a run to end, "
    "run_logs and diff_run show what it did. A run that asks for approval is answered by a person, never by you."
)

LooksOnly = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ChangesOnce = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Ends = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class RunTools:
    """The tools over one repository."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def _open(self) -> Orchestrator:
        return Orchestrator(settings=self._settings, surface=Surface.MCP)

    @tell_errors(ToolError)
    def list_runs(self, limit: int = 20, unfinished_only: bool = False) -> dict[str, Any]:
        """List the runs of this repository, newest first, with their status and what they ask."""
        with self._open() as orchestrator:
            return views.list_runs(orchestrator, limit, unfinished=unfinished_only)

    @tell_errors(ToolError)
    def run_status(self, run_id: RunName) -> dict[str, Any]:
        """Tell how a run stands: its units, what it asks a person, and what can be done next."""
        with self._open() as orchestrator:
            return views.describe_run(orchestrator, orchestrator.find(run_id))

    async def wait_run(self, run_id: RunName, timeout_s: float = WAIT_S) -> dict[str, Any]:
        """Wait until a run has ended, needs a person or is not running any more, at most timeout_s; call it again to go on."""
        left_s = max(0.0, min(timeout_s, WAIT_MAX_S))
        while True:  # In pieces: the end of the server waits for a thread, and not for the end of the run.
            found = await to_thread.run_sync(self._wait, run_id, min(left_s, PIECE_S), abandon_on_cancel=True)
            left_s -= PIECE_S
            if left_s <= 0 or found["waited_until"] != views.TIMEOUT:
                return found

    @tell_errors(ToolError)
    def _wait(self, run_id: str, timeout_s: float) -> dict[str, Any]:
        with self._open() as orchestrator:
            return views.wait_for_run(orchestrator, orchestrator.find(run_id), timeout_s)

    @tell_errors(ToolError)
    def run_logs(self, run_id: RunName, unit: UnitName = None, last_chars: int = LOG_CHARS) -> dict[str, Any]:
        """Read what the agents and checks of a run said and did: the last part of it."""
        with self._open() as orchestrator:
            return views.read_logs(orchestrator, orchestrator.find(run_id), unit, max(1, min(last_chars, CHARS_MAX)))

    @tell_errors(ToolError)
    def diff_run(self, run_id: RunName, unit: UnitName = None, max_chars: int = DIFF_CHARS) -> dict[str, Any]:
        """Read the changes that a run made to files."""
        with self._open() as orchestrator:
            return views.read_changes(orchestrator, orchestrator.find(run_id), unit, max(0, min(max_chars, CHARS_MAX)))

    @tell_errors(ToolError)
    def start_run(
        self,
        request_id: RequestId,
        task: Annotated[str | None, Field(description="A task in words, done by one agent and checked.")] = None,
        workflow: Annotated[str | None, Field(description="Or a workflow file (YAML) of the repository.")] = None,
        no_check: Annotated[bool, Field(description="Do the task without a check, where none is configured or found.")] = False,
        agent: Annotated[str | None, Field(description="NAME or NAME:MODEL; without it, the configured one.")] = None,
        budget_usd: Annotated[float | None, Field(description="The most that the run may spend, in dollars.")] = None,
    ) -> dict[str, Any]:
        """Start a run of a task or a workflow in the background and return its run_id at once."""
        given = RunRequest(request_id=request_id, task=task, workflow=workflow, no_check=no_check)
        asked = msgspec.structs.replace(given, agent=agent, budget_usd=budget_usd)
        with self._open() as orchestrator:
            return start_run(orchestrator, asked)

    @tell_errors(ToolError)
    def steer_run(
        self, run_id: RunName, words: str, request_id: RequestId, unit: UnitName = None, now: bool = False
    ) -> dict[str, Any]:
        """Tell the agents of a run something: it stands first in their next prompt; now=true stops the one at work to read it."""
        with self._open() as orchestrator:
            said = Steer(id=name_directive(request_id), text=words, unit=unit, now=now)
            return directives.steer(orchestrator, orchestrator.find(run_id), request_id, said)

    @tell_errors(ToolError)
    def pause_run(self, run_id: RunName, request_id: RequestId, reason: str = "", now: bool = False) -> dict[str, Any]:
        """Pause a run: nothing new starts; now=true also stops the agents at work."""
        with self._open() as orchestrator:
            run = orchestrator.find(run_id)
            return directives.pause(orchestrator, run, request_id, reason or "asked to pause", now=now)

    @tell_errors(ToolError)
    def resume_run(self, run_id: RunName, request_id: RequestId) -> dict[str, Any]:
        """Continue a run that was paused, interrupted or failed, in the background."""
        with self._open() as orchestrator:
            return directives.resume(orchestrator, orchestrator.find(run_id), request_id)

    @tell_errors(ToolError)
    def abort_run(self, run_id: RunName, request_id: RequestId, reason: str = "") -> dict[str, Any]:
        """Stop a run for good; its work is kept."""
        with self._open() as orchestrator:
            run = orchestrator.find(run_id)
            return directives.abort(orchestrator, run, request_id, reason or "aborted by a person")

    @tell_errors(ResourceError)
    def read_state(self, run_id: str) -> str:
        """Return everything known about a run."""
        with self._open() as orchestrator:
            return views.show_state(orchestrator, orchestrator.find(run_id))

    @tell_errors(ResourceError)
    def read_report(self, run_id: str) -> str:
        """Return what happened in a run."""
        with self._open() as orchestrator:
            return views.show_report(orchestrator, orchestrator.find(run_id))


def make_server(settings: Settings, *, allow_approve: bool) -> MCPServer[Settings]:
    """Return the server over one repository; with `allow_approve` it also carries a person's decision."""

    @asynccontextmanager
    async def give_settings(_: MCPServer[Settings]) -> AsyncIterator[Settings]:
        yield settings

    server: MCPServer[Settings] = MCPServer(
        "orc",
        lifespan=give_settings,
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="INFO" if is_debugging(settings.environ) else "CRITICAL",
    )
    tools = RunTools(settings)
    for look in (tools.list_runs, tools.run_status, tools.wait_run, tools.run_logs, tools.diff_run):
        server.add_tool(look, annotations=LooksOnly)
    for change in (tools.start_run, tools.steer_run, tools.pause_run, tools.resume_run):
        server.add_tool(change, annotations=ChangesOnce)
    server.add_tool(tools.abort_run, annotations=Ends)
    server.resource("orc://runs/{run_id}/state", mime_type="application/json", description="Everything known about a run.")(
        tools.read_state
    )
    server.resource("orc://runs/{run_id}/report", mime_type="text/markdown", description="What happened in a run.")(
        tools.read_report
    )
    if allow_approve:
        server.add_tool(approval.ask_person_to_approve_or_reject, annotations=ChangesOnce)
    return server
