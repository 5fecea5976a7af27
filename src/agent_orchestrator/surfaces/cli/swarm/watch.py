"""`orc swarm watch`: follows a run that another process drives."""

from __future__ import annotations

import sys

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
    from agent_orchestrator.runs.exits import exit_code
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.surfaces.cli.commands.watch import follow_run
    from agent_orchestrator.surfaces.cli.drive import result_facts
    from agent_orchestrator.surfaces.cli.overview import print_header
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_workspace(workspace) as orchestrator:
        run, _ = pick_swarm_run(orchestrator, target)
        screen = Screen(orchestrator.settings.environ, sys.stderr if as_json else sys.stdout)
        follower = Follower(orchestrator, run)
        print_header(orchestrator, screen, run, follower.folded)
        follow_run(orchestrator, follower, screen)
        summary = follower.system.summary(follower.state)
        code = exit_code(summary)
        if as_json:
            print_json(result_facts(orchestrator, run, summary, code))
    return code
