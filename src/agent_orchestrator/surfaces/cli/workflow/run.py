"""`orc run`: starts a workflow and stays with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import read_flag_budget
from agent_orchestrator.surfaces.cli.options import agent_options, drive_options, open_orchestrator, read_options
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_orchestrator.core.effects import AgentChoice
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Prepared
    from agent_orchestrator.runs.workflow.options import WorkflowOptions
    from agent_orchestrator.systems.workflow.spec import WorkflowSpec

EXAMPLE = """
orc run --workflow workflow.yaml --wrapper wrapper.py
orc run --workflow workflow.yaml --agent-command 'my-agent --yes' --detach
orc run --workflow workflow.yaml --agent claude --budget-usd 5
orc run --workflow workflow.yaml --rehearse script.yaml --no-wait
orc run --workflow workflow.yaml --wrapper wrapper.py --start-at-step coding
"""


@make_command("run", EXAMPLE)
@click.option("--workflow", metavar="FILE", required=True, help="The workflow file (YAML).")
@agent_options("performs every step", roles=True, wrapper=True)
@click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in prompts; repeatable.")
@click.option("--max-parallel", metavar="N", help="Steps at work at once (4).")
@click.option("--max-attempts", metavar="N", help="Tries of a step within one iteration (2).")
@click.option("--max-iterations", metavar="N", help="Executions of a step that loops back (4).")
@click.option("--gate-state-file", metavar="FILE", help='JSON that opens gates: {"name": true}.')
@click.option("--start-at-step", metavar="STEP", help="Take the newest run of this workflow (or --run-id) up from STEP.")
@click.option("--run-id", metavar="ID", help="The id of the new run; 8 random hex digits without it.")
@click.option("--git-worktree", is_flag=True, help="Let agents work in a worktree and branch of their own.")
@click.option("--plan", is_flag=True, help="Print what would run and stop; nothing is created.")
@drive_options(people="a person, or a closed gate,")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Run a workflow.

    Prints the run id first, then what happens, then the result and what to do next. While a step waits for a person
    the command stays. Ctrl-C once lets what runs finish, twice stops it; `orc resume` goes on in both cases.
    """
    from agent_orchestrator.config import load_agents, load_budget
    from agent_orchestrator.runs.workflow.hooks import HOOKS
    from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
    from agent_orchestrator.surfaces.cli.start import start

    if given["start_at_step"] is not None and given["git_worktree"]:
        raise click.UsageError("--git-worktree is chosen when a run is made; --start-at-step takes one up again.", ctx)
    with open_orchestrator(given["repo"]) as orchestrator:
        options = read_options(WorkflowOptions, given)
        settings = orchestrator.settings
        prepared = prepare(options, settings.home, settings.environ, load_agents(settings), _kept(orchestrator, given))
        HOOKS.set_budget(prepared.spec, load_budget(settings).override(read_flag_budget(given)))
        if given["plan"]:
            return _plan(orchestrator, prepared, as_json=given["as_json"])
        if given["start_at_step"] is not None:
            return _start_at(ctx, orchestrator, prepared, options, given)
        return start(orchestrator, options, given, prepared)


def _kept(orchestrator: Orchestrator, given: dict[str, Any]) -> Callable[[WorkflowSpec], Mapping[str, AgentChoice]] | None:
    """Return who goes on working when a run is started again at a step and nobody else is chosen."""
    if given["start_at_step"] is None:
        return None
    from agent_orchestrator.runs.workflow.start import agents_of_earlier

    return lambda spec: agents_of_earlier(orchestrator, spec, given["run_id"])


def _plan(orchestrator: Orchestrator, prepared: Prepared[WorkflowSpec], *, as_json: bool) -> int:
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json
    from agent_orchestrator.surfaces.cli.start import warn_all
    from agent_orchestrator.surfaces.cli.workflow.plan import plan_facts, print_plan

    warn_all(prepared.warnings)
    if as_json:
        print_json(plan_facts(prepared.spec))
    else:
        print_plan(prepared.spec, Screen(orchestrator.settings.environ))
    return 0


def _start_at(
    ctx: click.Context,
    orchestrator: Orchestrator,
    prepared: Prepared[WorkflowSpec],
    options: WorkflowOptions,
    given: dict[str, Any],
) -> int:
    import msgspec

    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.runs.workflow.start import find_earlier
    from agent_orchestrator.surfaces.cli.detach import again_arguments, detach
    from agent_orchestrator.surfaces.cli.start import drive_again, read_manner, warn_all

    warn_all(prepared.warnings)
    run, manner = find_earlier(orchestrator, prepared.spec, given["run_id"]), read_manner(given)
    if given["detach"]:
        return detach(orchestrator, run, again_arguments(run, ctx.obj), manner)
    owner = orchestrator.own(run.id)
    values = {"start_at": given["start_at_step"], "spec": msgspec.to_builtins(prepared.spec), **options.limits()}
    change = Change(values=values, budget=read_flag_budget(given), shared=given["shared_tree"])
    taken = take_up(orchestrator, run, change)
    return drive_again(orchestrator, run, owner, taken, manner)
