"""`orc team answer`: answers what the project manager asks."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs, open_orchestrator

EXAMPLE = """
orc team answer "tokens live for an hour; sessions are not needed"
"""


@make_command("answer", EXAMPLE)
@click.argument("text")
@click.option("--run", "run", metavar="TEAM", help="The team, if it is not the unfinished one.", shell_complete=complete_runs)
def command(text: str, run: str | None, repo: str | None, as_json: bool) -> int:
    """Answer what the project manager asks.

    The answer stands in its next prompt. Where a yes or a no is asked for, `orc team approve` and `orc reject` say it; an
    answer in words is refused there.
    """
    from agent_orchestrator.runs.directives import send_words
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.direct import report_sent
    from agent_orchestrator.systems.team.state import PM

    with open_orchestrator(repo) as orchestrator:
        found = find_team(orchestrator, run)
        sent = send_words(orchestrator, found, PM, text)
        said = f"Team {found.id} has the answer."
        if sent.owner is None:
            said += f" Nothing is running it now; continue with: orc resume {found.id}"
        return report_sent(orchestrator, found, sent, said, as_json=as_json)
