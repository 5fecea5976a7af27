"""`orc team answer`: answers what the project manager, or a group, asks."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs, open_orchestrator

EXAMPLE = """
orc team answer "tokens live for an hour; sessions are not needed"
orc team answer "use the staging key" --unit A
"""


@make_command("answer", EXAMPLE)
@click.argument("text")
@click.option("--run", "run", metavar="TEAM", help="The team, if it is not the unfinished one.", shell_complete=complete_runs)
@click.option("--unit", metavar="UNIT", help="pm or a group; needed when several ask.")
def command(text: str, run: str | None, unit: str | None, repo: str | None, as_json: bool) -> int:
    """Answer what the project manager asks.

    The answer stands in the next prompt. It also goes on with a group that waits for a person.
    """
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.surfaces.cli.directing import new_id, report_sent, send_and_wait
    from agent_orchestrator.surfaces.cli.teaming import pick_team

    with open_orchestrator(repo) as orchestrator:
        found = pick_team(orchestrator, run)
        values = {"text": text, **({"unit": unit} if unit is not None else {})}
        sent = send_and_wait(orchestrator, found, Instruct(id=new_id(), what="answer", values=values))
        said = f"Team {found.id} has the answer."
        if sent.owner is None:
            said += f" Nobody drives it now; go on with: orc resume {found.id}"
        return report_sent(orchestrator, found, sent, said, as_json=as_json)
