"""`orc team run`: starts a team and stays with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import budget_options, read_run_budget
from agent_orchestrator.surfaces.cli.options import (
    check_names,
    idle_option,
    open_orchestrator,
    permission_options,
    shared_tree_option,
)
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.runs.team.options import TeamOptions

EXAMPLE = """
orc team run "JWT login, registration, password reset" --agent claude --check "pytest -q"
orc team run --requirements wanted.md --agent codex --role tech_lead=claude:opus --escalate developer=claude:opus
orc team run "a changelog" --agent-command 'my-agent' --testing minimal --into develop
"""


@make_command("run", EXAMPLE)
@click.argument("text", required=False)
@click.option("--requirements", metavar="FILE", help="The requirements, from a file; items of a list are checked one by one.")
@click.option("--agent", metavar="NAME[:MODEL]", help="The agent that plays every role.")
@click.option("--agent-command", metavar="CMD", help="Any program as the agent: the prompt on its standard input.")
@click.option("--rehearse", metavar="SCRIPT", help="Play the agents from a YAML script, without a model.")
@click.option("--role", "roles", multiple=True, metavar="ROLE=AGENT", help="Another agent, or a command, for one role.")
@click.option("--escalate", multiple=True, metavar="ROLE=AGENT", help="Who takes over after two failed rounds of a group.")
@permission_options
@click.option("--into", metavar="BRANCH", help="The branch that groups are merged into (the current one).")
@click.option("--check", metavar="CMD", help="Must pass on the merged tree before a merge lands; without it, a detected one.")
@click.option("--no-check", is_flag=True, help="Merge without a check.")
@click.option("--check-timeout", metavar="TIME", help="How long the check may take, as in 90s, 10m.")
@click.option("--testing", metavar="MODE", help="full, minimal (no QA) or none (no unit tests either).")
@click.option("--max-parallel", metavar="N", help="Developers at work at once (4).")
@click.option("--max-qa-rounds", metavar="N", help="Failed QA rounds of a group before a person is asked (5).")
@click.option("--max-review-rounds", metavar="N", help="Review rounds with changes before a person is asked (5).")
@click.option("--max-attempts", metavar="N", help="Tries of one agent's turn (3).")
@click.option("--agent-timeout", metavar="TIME", help="Running time of one agent, as in 90s, 10m, 2h.")
@idle_option
@budget_options
@click.option("--env", multiple=True, metavar="K=V", help="Set for agents; stored with the run; repeatable.")
@click.option(
    "--pass-env",
    multiple=True,
    metavar="NAME",
    callback=check_names,
    help="Let agents see this variable; never stored; repeatable.",
)
@shared_tree_option
@click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person can move the team.")
@click.option("--detach", is_flag=True, help="Run in the background.")
@click.option("--on-wait", metavar="CMD", help="A shell command started when the team begins to wait for a person.")
@click.option("--on-end", metavar="CMD", help="A shell command started when the team ends.")
@click.option("--quiet", is_flag=True, help="Only the team's id and the result.")
def command(**given: Any) -> int:
    """Start a team and stay with it.

    Prints the team's id first, then the story as it is decided, then the result. A repository has one unfinished team at a
    time. Ctrl-C once lets what runs finish, twice stops it; `orc resume` goes on in both cases.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.team.options import prepare
    from agent_orchestrator.runs.team.start import start_team
    from agent_orchestrator.surfaces.cli.drive import Manner, drive
    from agent_orchestrator.surfaces.cli.screen import warn

    with open_orchestrator(given["repo"]) as orchestrator:
        spec = prepare(_options(given), orchestrator.settings.home, load_agents(orchestrator.settings))
        budget = read_run_budget(orchestrator, given)
        refuse_unmetered(budget, spec.choices)
        if spec.check is None and not given["no_check"]:
            warn("no check is known: merges are made without one; --check gives one.")
        started = start_team(orchestrator, spec, pass_env=tuple(given["pass_env"]), budget=budget, shared=given["shared_tree"])
        for note in started.notes:
            warn(note)
        manner = Manner(**{name: given[name] for name in ("quiet", "as_json", "no_wait", "on_wait", "on_end")})
        if given["detach"]:
            from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments

            started.owner.release()
            return detach(orchestrator, started.run, resume_arguments(started.run, manner), manner)
        from agent_orchestrator.surfaces.cli.progress import Writer

        Writer(sys.stderr if given["as_json"] else sys.stdout).line(f"team {started.run.id}")
        return drive(orchestrator, started.run, started.owner, manner)


def _options(given: dict[str, Any]) -> TeamOptions:
    from agent_orchestrator.runs.team.options import TeamOptions

    return TeamOptions(**{name: given[name] for name in TeamOptions.__struct_fields__})
