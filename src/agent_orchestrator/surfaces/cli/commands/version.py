"""`orc version`: which program this is."""

from __future__ import annotations

import sys

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.version import __version__

EXAMPLE = """
orc version --json
"""


@make_command("version", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Print the version."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    if as_json:
        import json

        click.echo(json.dumps({"version": __version__, "python": python, "executable": sys.executable}, indent=2))
    else:
        click.echo(f"orc {__version__}")
    return 0
