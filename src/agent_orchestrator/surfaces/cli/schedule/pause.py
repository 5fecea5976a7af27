"""`orc schedule pause`: a schedule that rests."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc schedule pause nightly
"""


@make_command("pause", EXAMPLE)
@click.argument("name")
def command(repo: str | None, as_json: bool, name: str) -> int:
    """Pause a schedule: it queues nothing.

    What is due meanwhile gets no run; `orc schedule resume` goes on with the next due time. Runs that it queued go on.
    """
    from agent_orchestrator.surfaces.cli.schedule.shared import change_schedule

    return change_schedule(repo, name, "pause", as_json=as_json)
