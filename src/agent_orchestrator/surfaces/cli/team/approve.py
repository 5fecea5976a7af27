"""`orc team approve`: says yes to what a team asks a person."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc team approve
orc team approve A --comments 'the third try may use the mock server'
"""


@make_command("approve", EXAMPLE)
@click.argument("unit", required=False)
@click.option("--run", "run", metavar="TEAM", help="The team, if it is not the unfinished one.")
@click.option("--comments", metavar="TEXT", default="", help="Told to the agent that continues.")
def command(unit: str | None, run: str | None, comments: str, repo: str | None, as_json: bool) -> int:
    """Approve what a team asks a person.

    A group at its limit continues, a merge that was held up is tried again, a reduced scope is accepted; UNIT may be left
    out when one asks. `orc reject TEAM UNIT --comments WHY` says no.
    """
    from agent_orchestrator.core.inputs import Answer
    from agent_orchestrator.runs.directives import new_id
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.direct import answer

    with open_orchestrator(repo) as orchestrator:
        said = Answer(id=new_id(), approved=True, unit=unit, comments=comments)
        return answer(orchestrator, find_team(orchestrator, run), said, as_json=as_json)
