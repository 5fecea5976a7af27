"""`orc web`: shows runs on a page in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.config import Settings
    from agent_orchestrator.surfaces.web.server import Listening

EXAMPLE = """
orc web
orc web ~/shop ~/api --open
orc web --listen 0.0.0.0 --read-only
"""
INSTALL = "pip install 'orc-agents[web]'"


@make_command("web", EXAMPLE)
@click.argument("repos", nargs=-1, metavar="[REPO]...", type=click.Path())
@click.option("--listen", metavar="HOST", default="127.0.0.1", help="Listen at this address: 0.0.0.0 lets other machines in.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65_535), help="Listen at this port; without it 7420, or the next.")
@click.option("--read-only", is_flag=True, help="Show runs only: nothing can be approved, stopped or started.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def command(repos: tuple[str, ...], repo: str | None, as_json: bool, open_page: bool, **given: object) -> int:
    """Show runs on a page in the browser.

    Of every REPO that is named; without any, of this one and those of your configuration (`[web] repos`). Prints a link with a
    key that is valid once: the browser that opens it may look and decide from then on, nobody else. Runs go on without the page,
    which shows their journals and sends what you decide as `orc approve` does. Ctrl-C ends it.
    """
    from agent_orchestrator.config import load_settings

    try:
        from agent_orchestrator.surfaces.listener import Address
        from agent_orchestrator.surfaces.web.server import serve
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise Unavailable(detail=f"The page needs {package}, which is not installed: {INSTALL}.") from error
    named = (*repos, *((repo,) if repo is not None else ()))
    settings = [load_settings(one) for one in dict.fromkeys(named)] or _find_configured()
    read_only = bool(given.pop("read_only"))
    address = Address(host=str(given["listen"]), port=given["port"])  # type: ignore[arg-type]
    serve(settings, address, read_only=read_only, announce=lambda found: _announce(found, as_json=as_json, open_page=open_page))
    return 0


def _find_configured() -> list[Settings]:
    """Return the repository around the current folder, and those of the user's configuration."""
    from agent_orchestrator.config import load_settings
    from agent_orchestrator.config.keys import SHOWN_REPOSITORIES
    from agent_orchestrator.config.trust import list_repositories
    from agent_orchestrator.surfaces.cli.screen import warn

    here = load_settings()
    known = list_repositories(here, SHOWN_REPOSITORIES)
    found = [] if known and not (here.home / ".git").exists() else [here]
    for path in known:
        if not path.is_dir():
            warn(f"[web] repos names {path}, which is not a folder; it is left out.")
        elif path != here.home:
            found.append(load_settings(str(path)))
    return found


def _announce(found: Listening, *, as_json: bool, open_page: bool) -> None:
    import os
    import sys

    import msgspec

    if as_json:
        sys.stdout.write(msgspec.json.encode({**msgspec.to_builtins(found), "pid": os.getpid()}).decode() + "\n")
    else:
        sys.stdout.write(f"{found.url}\n")
    sys.stdout.flush()
    if open_page:
        click.launch(found.url)
