"""`orc swarm attach`: joins a bead's tmux session, or follows its output."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.swarming import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm attach bd-101
"""


@swarm_command("attach", EXAMPLE)
@target_argument(required=True)
def command(target: str, workspace: str | None, as_json: bool) -> int:
    """Join a bead's tmux session, or follow its output.

    A bead that was dispatched with --tmux is joined in its session; detach with the keys of tmux, the agent goes on. Any
    other is followed until its run ends.
    """
    from agent_orchestrator.surfaces.cli.commands.logs import print_logs

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        return print_logs(orchestrator, run, bead, as_json=as_json, follow=True, err=False, attempt=None)
