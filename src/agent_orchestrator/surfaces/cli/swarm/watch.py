"""`orc swarm watch`: follows a run that another process drives."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm watch
orc swarm watch bd-101 && echo done
"""


@swarm_command("watch", EXAMPLE)
@target_argument()
def command(target: str | None, workspace: str | None, as_json: bool) -> int:
    """Follow a run until it ends.

    Works from any process; exits with the code of the run. Ctrl-C stops watching, not the run.
    """
    from agent_orchestrator.surfaces.cli.commands.watch import watch

    with open_workspace(workspace) as orchestrator:
        return watch(orchestrator, pick_swarm_run(orchestrator, target)[0], as_json=as_json, units=False)
