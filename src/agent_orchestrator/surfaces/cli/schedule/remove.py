"""`orc schedule remove`: a schedule that is no more."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc schedule remove nightly
"""


@make_command("remove", EXAMPLE)
@click.argument("name")
def command(repo: str | None, as_json: bool, name: str) -> int:
    """Remove a schedule.

    Runs that it queued stay, and go on.
    """
    from agent_orchestrator.surfaces.cli.schedule.shared import change_schedule

    return change_schedule(repo, name, "remove", as_json=as_json)
