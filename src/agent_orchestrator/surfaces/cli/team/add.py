"""`orc team add`: one more requirement, while the team works."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc team add "passwords are at least twelve characters"
orc team add "the API is documented" --check "test -s docs/api.md"
"""


@make_command("add", EXAMPLE)
@click.argument("text")
@click.option("--check", metavar="CMD", help="A command that shows that it is met.")
@click.option("--run", "run", metavar="TEAM", help="The team, if it is not the unfinished one.")
def command(text: str, check: str | None, run: str | None, repo: str | None, as_json: bool) -> int:
    """Ask a running team for one thing more.

    The project manager plans it as soon as it can; the team is not done before it is met.
    """
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.direct import report_sent

    with open_orchestrator(repo) as orchestrator:
        found = find_team(orchestrator, run)
        values = {"text": text, **({"check": check} if check is not None else {})}
        sent = send_and_wait(orchestrator, found, Instruct(id=new_id(), what="require", values=values))
        said = f"Team {found.id} is asked for it."
        if sent.owner is None:
            said += f" Nothing is running it now; continue with: orc resume {found.id}"
        return report_sent(orchestrator, found, sent, said, as_json=as_json)
