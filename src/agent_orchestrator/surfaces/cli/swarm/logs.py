"""`orc swarm logs`: what a bead's agent and its verification wrote."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm logs bd-101
orc swarm logs bd-101 --attempt 1 --err
orc swarm logs bd-101 -f
"""


@swarm_command("logs", EXAMPLE)
@target_argument(required=True)
@click.option("--follow", "-f", is_flag=True, help="Go on printing until the run ends.")
@click.option("--err", is_flag=True, help="The error output instead of the output.")
@click.option("--attempt", metavar="N", help="Of this attempt; the newest without it.")
def command(target: str, workspace: str | None, as_json: bool, follow: bool, err: bool, attempt: str | None) -> int:
    """Print what a bead's agent wrote.

    And its verification, in the order they ran. With a run as TARGET, of all its beads.
    """
    from agent_orchestrator.surfaces.cli.commands.logs import print_logs

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        return print_logs(orchestrator, run, bead, as_json=as_json, follow=follow, err=err, attempt=attempt)
