"""What the phases commands share: their options, how a run is driven, what is told at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import budget_options
from agent_orchestrator.surfaces.cli.options import check_names, idle_option, permission_options, shared_tree_option

if TYPE_CHECKING:
    from agent_orchestrator.runs.phases.options import PhasesOptions
    from agent_orchestrator.surfaces.cli.drive import Manner

Function = Callable[..., Any]

publish_option = click.option(
    "--publish/--no-publish",
    default=None,
    help="Push the branch, and make issues and a pull request with gh; without it (or `publish = true`) nothing is published.",
)


def publish_arguments(given: dict[str, Any]) -> list[str]:
    """The flag as it was given, for another process."""
    return [] if given["publish"] is None else ["--publish" if given["publish"] else "--no-publish"]


def run_options(function: Function) -> Function:
    """Everything a run of phases can be started with."""
    options = (
        click.argument("document", metavar="DOC"),
        click.option("--agent", metavar="NAME[:MODEL]", help="The agent that works."),
        click.option("--agent-command", metavar="CMD", help="Any program as the agent: the prompt on its standard input."),
        click.option("--rehearse", metavar="SCRIPT", help="Play the agents from a YAML script, without a model."),
        click.option("--role", "roles", multiple=True, metavar="ROLE=AGENT", help="Another agent for one role; repeatable."),
        permission_options,
        click.option("--yes", is_flag=True, help="Approve the plan, and every change of it, beforehand."),
        publish_option,
        click.option("--plan-with", metavar="AGENT", help="Let this agent ask its questions about the plan first."),
        click.option("--max-parallel", metavar="N", help="Tasks at work at once (1)."),
        click.option("--max-iterations", metavar="N", help="Iterations of a task (the document's bound, or 30)."),
        click.option("--max-attempts", metavar="N", help="Tries of one launch that fails (3)."),
        budget_options,
        click.option("--no-supervisor", is_flag=True, help="Without the supervisor's checks."),
        click.option("--no-outer-ralph", is_flag=True, help="Without the outer review loop."),
        click.option("--timeout", metavar="TIME", help="Running time of one attempt, as in 90s, 10m."),
        idle_option,
        click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in prompts; repeatable."),
        click.option("--env", multiple=True, metavar="K=V", help="Set for agents; stored with the run; repeatable."),
        click.option(
            "--pass-env", multiple=True, metavar="NAME", callback=check_names, help="Let agents see this variable; repeatable."
        ),
        click.option("--run-id", metavar="ID", help="The id of the new run; 8 random hex digits without it."),
        shared_tree_option,
        click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person can move the run."),
        click.option("--detach", is_flag=True, help="Run in the background."),
        click.option("--on-wait", metavar="CMD", help="A shell command started when the run begins to wait for a person."),
        click.option("--on-end", metavar="CMD", help="A shell command started when the run ends."),
        click.option("--quiet", is_flag=True, help="Only the run id and the result."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def read_options(given: dict[str, Any]) -> PhasesOptions:
    """The options as control takes them."""
    from agent_orchestrator.runs.phases.options import PhasesOptions

    return PhasesOptions(**{name: given[name] for name in PhasesOptions.__struct_fields__ if name in given})


def read_manner(given: dict[str, Any]) -> Manner:
    """How to show and leave."""
    from agent_orchestrator.surfaces.cli.drive import Manner

    return Manner(**{name: given[name] for name in ("quiet", "as_json", "no_wait", "on_wait", "on_end")})


def instruct(repo: str | None, run: str | None, what: str, values: dict[str, str], text: str, *, as_json: bool) -> int:
    """Sends what only runs of phases understand, for `skip`, `retry` and `check`."""
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.runs.phases.start import find_phases
    from agent_orchestrator.surfaces.cli.direct import new_id, report_sent, send_and_wait
    from agent_orchestrator.surfaces.cli.options import open_orchestrator

    with open_orchestrator(repo) as orchestrator:
        found = find_phases(orchestrator, run)
        sent = send_and_wait(orchestrator, found, Instruct(id=new_id(), what=what, values=values))
        told = f"Run {found.id}: {text}."
        if sent.owner is None:
            told = f"Run {found.id}: recorded ({text}). Nobody drives it now; go on with: orc resume {found.id}"
        elif not sent.taken:
            told = f"Run {found.id}: recorded; {sent.owner} has not taken it yet."
        return report_sent(orchestrator, found, sent, told, as_json=as_json)
