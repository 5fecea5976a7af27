"""`orc mcp`: lets a chat drive runs, by the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.errors import Unavailable, UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.surfaces.mcp.transport import ChatAddress

EXAMPLE = """
claude mcp add orc -- orc mcp
codex mcp add orc -- orc mcp
orc mcp --http
orc mcp --http --allow-approve
"""
INSTALL = "pip install 'orc-agents[mcp]'"


@make_command("mcp", EXAMPLE)
@click.option("--http", is_flag=True, help="Listen for clients that have the printed key; else serve the one that started it.")
@click.option("--listen", metavar="HOST", default="127.0.0.1", help="Listen at this address: 0.0.0.0 lets other machines in.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65_535), help="Listen at this port; without it 7430, or the next.")
@click.option("--allow-approve", is_flag=True, help="Let the chat ask its person to approve or reject, in a form of the client.")
@click.pass_context
def command(
    ctx: click.Context, http: bool, listen: str, port: int | None, allow_approve: bool, repo: str | None, as_json: bool
) -> int:
    """Let a chat drive runs, as an MCP server.

    Its tools list, start, follow, steer, pause, resume and abort runs of this repository and read their logs and changes. None of
    them approves anything, and an agent of a run may not use them. Runs go on when the chat is closed.
    """
    from agent_orchestrator.config import load_settings

    if not http and (port is not None or ctx.get_parameter_source("listen") is not click.core.ParameterSource.DEFAULT):
        raise UsageError(detail="--listen and --port are for --http; without it the client that starts orc mcp is served.")
    try:
        from agent_orchestrator.surfaces.listener import Address
        from agent_orchestrator.surfaces.mcp.transport import serve_http, serve_streams
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("mcp", "mcp_types", "starlette", "uvicorn", "anyio", "pydantic"):
            raise
        raise Unavailable(detail=f"The MCP server needs {package}, which is not installed: {INSTALL}.") from error
    settings = load_settings(repo)
    if not http:
        serve_streams(settings, allow_approve=allow_approve)
        return 0
    address = Address(host=listen, port=port)
    serve_http(settings, address, allow_approve=allow_approve, announce=lambda found: _announce(found, as_json=as_json))
    return 0


def _announce(found: ChatAddress, *, as_json: bool) -> None:
    import os
    import sys

    import msgspec

    if as_json:
        sys.stdout.write(msgspec.json.encode({**msgspec.to_builtins(found), "pid": os.getpid()}).decode() + "\n")
    else:
        sys.stdout.write(f"{found.url}\nAuthorization: Bearer {found.key}\n")
    sys.stdout.flush()
