"""`orc run`: starts a workflow and stays with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import budget_options, read_flag_budget, read_run_budget
from agent_orchestrator.surfaces.cli.options import (
    check_names,
    idle_option,
    open_orchestrator,
    permission_options,
    shared_tree_option,
)
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_orchestrator.core.budget import Budget
    from agent_orchestrator.core.effects import AgentChoice
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.workflow.options import Prepared, WorkflowOptions
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner
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
@click.option("--wrapper", metavar="FILE", help="A program that performs every step, called with --run-id, --step-id, …")
@click.option("--wrapper-arg", "wrapper_args", multiple=True, metavar="ARG", help="Passed on to the wrapper; repeatable.")
@click.option("--agent", metavar="NAME[:MODEL]", help="The agent that performs every step.")
@click.option("--agent-command", metavar="CMD", help="Any program as the agent: the prompt on its standard input.")
@click.option("--rehearse", metavar="SCRIPT", help="Play the agents from a YAML script, without a model.")
@click.option("--role", "roles", multiple=True, metavar="ROLE=NAME[:MODEL]", help="Another agent for one role; repeatable.")
@permission_options
@click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in prompts; repeatable.")
@click.option("--env", multiple=True, metavar="K=V", help="Set for agents; stored with the run; repeatable.")
@click.option(
    "--pass-env",
    multiple=True,
    metavar="NAME",
    callback=check_names,
    help="Let agents see this variable; never stored; repeatable.",
)
@click.option("--max-parallel", metavar="N", help="Steps at work at once (4).")
@click.option("--max-attempts", metavar="N", help="Tries of a step within one iteration (2).")
@click.option("--max-iterations", metavar="N", help="Executions of a step that loops back (4).")
@click.option("--timeout", metavar="TIME", help="Running time of one attempt, as in 90s, 10m, 2h.")
@idle_option
@budget_options
@click.option("--gate-state-file", metavar="FILE", help='JSON that opens gates: {"name": true}.')
@click.option("--start-at-step", metavar="STEP", help="Take the newest run of this workflow (or --run-id) up from STEP.")
@click.option("--run-id", metavar="ID", help="The id of the new run; 8 random hex digits without it.")
@click.option("--git-worktree", is_flag=True, help="Let agents work in a worktree and branch of their own.")
@shared_tree_option
@click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person, or a closed gate, can move the run.")
@click.option("--detach", is_flag=True, help="Run in the background.")
@click.option("--plan", is_flag=True, help="Print what would run and stop; nothing is created.")
@click.option("--on-wait", metavar="CMD", help="A shell command started when a step begins to wait for a person.")
@click.option("--on-end", metavar="CMD", help="A shell command started when the run ends.")
@click.option("--quiet", is_flag=True, help="Only the run id and the result.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Run a workflow.

    Prints the run id first, then what happens, then the result and what to do next. While a step waits for a person
    the command stays. Ctrl-C once lets what runs finish, twice stops it; `orc resume` goes on in both cases.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.workflow.options import add_step_budgets, prepare

    if given["start_at_step"] is not None and given["git_worktree"]:
        raise click.UsageError("--git-worktree is chosen when a run is made; --start-at-step takes one up again.", ctx)
    with open_orchestrator(given["repo"]) as orchestrator:
        options = _options(given)
        settings = orchestrator.settings
        prepared = prepare(options, settings.home, settings.environ, load_agents(settings), _kept(orchestrator, given))
        _warn(prepared)
        budget = read_run_budget(orchestrator, given)
        refuse_unmetered(add_step_budgets(budget, prepared.spec), prepared.spec.choices)
        if given["plan"]:
            return _plan(orchestrator, prepared, as_json=given["as_json"])
        if given["start_at_step"] is not None:
            return _start_at(ctx, orchestrator, prepared, options, given)
        return _start(orchestrator, prepared, budget, given)


def _options(given: dict[str, Any]) -> WorkflowOptions:
    from agent_orchestrator.runs.workflow.options import WorkflowOptions

    return WorkflowOptions(**{name: given[name] for name in WorkflowOptions.__struct_fields__})


def _kept(orchestrator: Orchestrator, given: dict[str, Any]) -> Callable[[WorkflowSpec], Mapping[str, AgentChoice]] | None:
    """Who goes on working when a run is started again at a step and nobody else is chosen."""
    if given["start_at_step"] is None:
        return None
    from agent_orchestrator.runs.workflow.start import agents_of_earlier

    return lambda spec: agents_of_earlier(orchestrator, spec, given["run_id"])


def _manner(given: dict[str, Any]) -> Manner:
    from agent_orchestrator.surfaces.cli.drive import Manner

    return Manner(**{name: given[name] for name in ("quiet", "as_json", "no_wait", "on_wait", "on_end")})


def _warn(prepared: Prepared) -> None:
    from agent_orchestrator.surfaces.cli.screen import warn

    for text in prepared.warnings:
        warn(text)


def _plan(orchestrator: Orchestrator, prepared: Prepared, *, as_json: bool) -> int:
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json
    from agent_orchestrator.surfaces.cli.workflow.plan import plan_facts, print_plan

    if as_json:
        print_json(plan_facts(prepared.spec))
    else:
        print_plan(prepared.spec, Screen(orchestrator.settings.environ))
    return 0


def _start(orchestrator: Orchestrator, prepared: Prepared, budget: Budget, given: dict[str, Any]) -> int:
    from agent_orchestrator.runs.workflow.start import start_workflow
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.screen import warn

    pass_env = tuple(given["pass_env"])
    worktree = given["git_worktree"]
    run = start_workflow(
        orchestrator,
        prepared,
        run_id=given["run_id"],
        worktree=worktree,
        shared=given["shared_tree"],
        pass_env=pass_env,
        budget=budget,
        tell=warn,
    )
    if given["detach"]:
        from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments

        manner = _manner(given)
        return detach(orchestrator, run, resume_arguments(run, manner), manner)
    _announce(run, as_json=given["as_json"])
    return drive(orchestrator, run, orchestrator.own(run.id), _manner(given))


def _start_at(
    ctx: click.Context, orchestrator: Orchestrator, prepared: Prepared, options: WorkflowOptions, given: dict[str, Any]
) -> int:
    import msgspec

    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.runs.workflow.start import find_earlier
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.screen import warn

    run = find_earlier(orchestrator, prepared.spec, given["run_id"])
    if given["detach"]:
        from agent_orchestrator.surfaces.cli.detach import again_arguments, detach

        return detach(orchestrator, run, again_arguments(run, ctx.obj), _manner(given))
    owner = orchestrator.own(run.id)
    changes = {"start_at": given["start_at_step"], "spec": msgspec.to_builtins(prepared.spec), **options.limits()}
    taken = take_up(orchestrator, run, changes, read_flag_budget(given), shared=given["shared_tree"])
    _announce(run, as_json=given["as_json"])
    for note in taken.notes:
        warn(note)
    return drive(orchestrator, run, owner, _manner(given), taken.inputs)


def _announce(run: StoredRun, *, as_json: bool) -> None:
    """The first line: whoever started us can find the run again, whatever happens next."""
    from agent_orchestrator.surfaces.cli.progress import Writer

    Writer(sys.stderr if as_json else sys.stdout).line(f"run {run.id}")
