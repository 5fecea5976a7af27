"""`orc swarm logs`: what a bead's agent and its verification wrote."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import stream_options
from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm logs bd-101
orc swarm logs bd-101 --attempt 1 --err
orc swarm logs bd-101 -f
"""


@swarm_command("logs", EXAMPLE)
@target_argument(required=True)
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run ends.")
@click.option("--attempt", metavar="N", help="Of this attempt; the newest without it.")
@stream_options
def command(target: str, workspace: str | None, as_json: bool, **given: Any) -> int:
    """Show what a bead's agent said and did.

    And its verification, in the order they ran. With a run as TARGET, of all its beads. --raw prints the stream itself.
    """
    from agent_orchestrator.surfaces.cli.commands.logs import print_logs
    from agent_orchestrator.surfaces.cli.transcripts import LogOptions

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        return print_logs(orchestrator, run, bead, LogOptions(**given), as_json=as_json)
