"""A chat client without a model: the SDK's own client, which starts `orc mcp` or comes by HTTP, and calls tools one by one."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems import find_system
from tests.acceptance.rig import ORC, WAIT_S
from tests.conftest import make_repo
from tests.web.server import environment

WORKFLOW = "name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md}\n"
CONFIG = '[run]\nagent = "shell"\n'
WAITS = 'while ! test -e "$REPO_DIR/go"; do sleep 0.05; done\n'
"""An agent that works until the file is there."""
TURNS = 40


class Place:
    """A repository whose agents are shell programs: the prompts."""

    def __init__(self, folder: Path, prompt: str, workflow: str = WORKFLOW) -> None:
        self.folder, self.repo = folder, make_repo(folder / "repo")
        for name, text in {"workflow.yaml": workflow, "prompt.md": prompt, ".orc.toml": CONFIG}.items():
            (self.repo / name).write_text(text)
        self.environ = environment(folder)

    def talk(self, say: Callable[[Chat], Awaitable[None]], *arguments: str, **how: Any) -> None:
        """Let a client start `orc mcp` with these arguments, and talk to it."""
        words = ["-m", "agent_orchestrator.cli", "mcp", "--repo", str(self.repo), *arguments]
        server = StdioServerParameters(command=sys.executable, args=words, env=self.environ)
        asyncio.run(self._talk(server, say, how))

    def talk_http(self, url: str, key: str, say: Callable[[Chat], Awaitable[None]], **how: Any) -> None:
        """Let a client with this key talk to a server that listens."""

        async def come() -> None:
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S * 2, trust_env=False) as sender:
                await self._talk(streamable_http_client(url, http_client=sender), say, how)

        asyncio.run(come())

    async def _talk(self, server: Any, say: Callable[[Chat], Awaitable[None]], how: dict[str, Any]) -> None:
        async with Client(server, **how) as client:
            await say(Chat(client))

    def orc(self, *arguments: str) -> Any:
        """Run a command to its end and return what it printed as JSON."""
        done = subprocess.run(
            [*ORC, *arguments, "--repo", str(self.repo), "--json"],
            cwd=self.repo,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S * 2,
            check=False,
        )
        return json.loads(done.stdout)

    def stands(self, run: str) -> tuple[str, tuple[str, ...], bool]:
        """Return how a run stands: its status, what it asks, and whether anybody drives it."""
        with Orchestrator(self.repo) as orchestrator:
            found = orchestrator.find(run)
            return found.summary.status, found.summary.asks, orchestrator.owner(found) is not None

    def runs(self) -> list[str]:
        """Return the ids of all runs."""
        return [one["run_id"] for one in self.orc("list")["runs"]]

    def events(self, run: str, kind: type[Event]) -> list[Any]:
        """Return the events of a kind in a run's journal."""
        with Orchestrator(self.repo) as orchestrator:
            system = find_system(orchestrator.find(run).system)
            rows = orchestrator.store.rows(RunId(run))
        return [event for _, _, body in rows for event in decode_events(system, body) if isinstance(event, kind)]


class Chat:
    """An open conversation with the server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        """Return the names of the tools that are offered."""
        return sorted(tool.name for tool in (await self.client.list_tools()).tools)

    async def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Call a tool and return what it tells."""
        done = await self.client.call_tool(tool, given)
        assert not done.is_error, done.content
        found: dict[str, Any] = json.loads(done.content[0].text)  # type: ignore[union-attr]
        return found

    async def fail(self, tool: str, **given: Any) -> str:
        """Call a tool that refuses, and return its sentence."""
        done = await self.client.call_tool(tool, given)
        assert done.is_error, done.content
        return str(done.content[0].text).partition(": ")[2]  # type: ignore[union-attr]

    async def wait(self, run: str) -> dict[str, Any]:
        """Wait for a run as a model would, by calling again and again."""
        for _ in range(TURNS):
            found = await self.call("wait_run", run_id=run, timeout_s=5)
            if found["waited_until"] != "timeout":
                return found
        raise AssertionError(f"run {run} never came to rest")


class HttpServer:
    """`orc mcp --http`, as a program."""

    def __init__(self, place: Place, *arguments: str) -> None:
        words = [*ORC, "mcp", "--http", "--json", "--port", "0", "--repo", str(place.repo), *arguments]
        self.process = subprocess.Popen(
            words, cwd=place.folder, env=place.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.url, self.key, self.port = said["url"], said["key"], said["port"]

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
