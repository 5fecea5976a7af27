"""`orc swarm attach`: joins a bead's tmux session, or follows its output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm attach bd-101
"""


@swarm_command("attach", EXAMPLE)
@target_argument(required=True)
def command(target: str, workspace: str | None, as_json: bool) -> int:
    """Join a bead's tmux session, or follow its output.

    A bead that was dispatched with --tmux is joined in its session; detach with the keys of tmux, the agent keeps running. Any
    other, and without a terminal, is followed until its run ends.
    """
    from agent_orchestrator.surfaces.cli.commands.logs import print_logs
    from agent_orchestrator.surfaces.cli.screen import print_json
    from agent_orchestrator.surfaces.cli.transcripts import LogOptions
    from agent_orchestrator.systems.swarm.spec import terminal_of

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        session = terminal_of(bead) if bead is not None and _has_session(terminal_of(bead)) else None
        if as_json:
            print_json({"run_id": run.id, "bead": bead, "session": session, "driven_by": orchestrator.owner(run)})
            return 0
        if session is not None and sys.stdin.isatty() and sys.stdout.isatty():
            # tmux does not attach inside itself; there, one's own client goes to the session.
            join = "switch-client" if orchestrator.settings.environ.get("TMUX") else "attach-session"
            os.execvp("tmux", ["tmux", join, "-t", f"={session}"])
        return print_logs(orchestrator, run, bead, LogOptions(follow=True), as_json=False)


def _has_session(session: str) -> bool:
    tmux = shutil.which("tmux")
    if tmux is None:
        return False
    return subprocess.run([tmux, "has-session", "-t", f"={session}"], capture_output=True, check=False).returncode == 0
