"""`orc schedule resume`: a schedule that goes on."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc schedule resume nightly
"""


@make_command("resume", EXAMPLE)
@click.argument("name")
def command(repo: str | None, as_json: bool, name: str) -> int:
    """Let a schedule go on with its next due time.

    What was due while it was paused is not made up for.
    """
    from agent_orchestrator.surfaces.cli.schedule.shared import change_schedule

    return change_schedule(repo, name, "resume", as_json=as_json)
