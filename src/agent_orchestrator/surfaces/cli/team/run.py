"""`orc team run`: starts a team and stays with it."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import agent_options, drive_options, queue_options, read_options
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.queue import open_to_start

EXAMPLE = """
orc team run "JWT login, registration, password reset" --agent claude --check "pytest -q"
orc team run --requirements wanted.md --agent codex --role tech_lead=claude:opus --escalate developer=claude:opus
orc team run "a changelog" --agent-command 'my-agent' --testing minimal --into develop
"""


@make_command("run", EXAMPLE)
@click.argument("text", required=False)
@click.option("--requirements", metavar="FILE", help="The requirements, from a file; items of a list are checked one by one.")
@agent_options("plays every role", timeout="--agent-timeout", time="one agent", roles=True)
@click.option("--escalate", multiple=True, metavar="ROLE=AGENT", help="Who takes over after two failed rounds of a group.")
@click.option("--into", metavar="BRANCH", help="The branch that groups are merged into (the current one).")
@click.option("--check", metavar="CMD", help="Must pass on the merged tree before a merge lands; without it, a detected one.")
@click.option("--no-check", is_flag=True, help="Merge without a check.")
@click.option("--check-timeout", metavar="TIME", help="How long the check may take, as in 90s, 10m.")
@click.option("--testing", metavar="MODE", help="full, minimal (no QA) or none (no unit tests either).")
@click.option("--max-parallel", metavar="N", help="Developers at work at once (4).")
@click.option("--max-qa-rounds", metavar="N", help="Failed QA rounds of a group before a person is asked (5).")
@click.option("--max-review-rounds", metavar="N", help="Review rounds with changes before a person is asked (5).")
@click.option("--max-attempts", metavar="N", help="Tries of one agent's turn (3).")
@click.option("--run-id", metavar="ID", help="The id of the new team; made of the time without it.")
@drive_options("team")
@queue_options
def command(**given: Any) -> int:
    """Start a team and stay with it.

    Prints the team's id first, then the story as it is decided, then the result. A repository has one unfinished team at a
    time. Ctrl-C once lets running agents finish, twice stops them; `orc resume` continues in both cases.
    """
    from agent_orchestrator.runs.team.options import TeamOptions
    from agent_orchestrator.surfaces.cli.start import start

    with open_to_start(given) as orchestrator:
        return start(orchestrator, read_options(TeamOptions, given), given)
