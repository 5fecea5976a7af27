"""`orc team watch`: follows the team of a repository, as `orc watch` follows any run."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc team watch
orc team watch v4_20250106_100000 && echo done
"""


@make_command("watch", EXAMPLE)
@run_argument()
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Follow a team until it ends.

    Works from any process; exits with the code of the team. Ctrl-C stops watching, not the team.
    """
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.commands.watch import watch

    with open_orchestrator(repo) as orchestrator:
        return watch(orchestrator, find_team(orchestrator, run), as_json=as_json)
