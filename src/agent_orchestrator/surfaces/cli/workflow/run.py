"""`orc run`: starts a workflow and stays with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import read_flag_budget
from agent_orchestrator.surfaces.cli.options import (
    agent_options,
    drive_options,
    edits_option,
    pr_option,
    queue_options,
    read_options,
)
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.queue import open_to_start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_orchestrator.core.effects import AgentChoice
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Prepared
    from agent_orchestrator.runs.workflow.options import WorkflowOptions
    from agent_orchestrator.systems.workflow.spec import WorkflowSpec

EXAMPLE = """
orc run "fix the login bug"
orc run "fix the login bug" --agent claude --check "make test"
orc run --workflow workflow.yaml --wrapper wrapper.py
orc run --workflow workflow.yaml --agent-command 'my-agent --yes' --detach
orc run --workflow workflow.yaml --agent claude --budget-usd 5
orc run --workflow workflow.yaml --rehearse script.yaml --no-wait
orc run --workflow workflow.yaml --wrapper wrapper.py --start-at-step coding
orc run "fix the login bug" --agent-command my-agent --queue --pool gpu
"""

WHERE = ("git_worktree_branch", "git_worktree_ref")
"""The options that ask for a worktree by saying what it is to be."""


@make_command("run", EXAMPLE)
@click.argument("task", required=False)
@click.option("--workflow", metavar="FILE", help="The workflow file (YAML); for a TASK the configured or the built-in one.")
@click.option("--check", metavar="CMD", help="Says whether TASK is done; without it, the configured or a detected one.")
@click.option("--no-check", is_flag=True, help="Do TASK without a check.")
@agent_options("performs every step", roles=True, wrapper=True)
@click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in prompts; repeatable.")
@click.option("--max-parallel", metavar="N", help="Steps at work at once (4).")
@click.option("--max-attempts", metavar="N", help="Tries of a step within one iteration (2).")
@click.option("--max-iterations", metavar="N", help="Executions of a step that loops back (4).")
@click.option("--gate-state-file", metavar="FILE", help='JSON that opens gates: {"name": true}.')
@click.option("--start-at-step", metavar="STEP", help="Take the newest run of this workflow (or --run-id) up from STEP.")
@click.option("--run-id", metavar="ID", help="The id of the new run; 8 random hex digits without it.")
@click.option("--issue-number", metavar="N", help="Set ISSUE_NUMBER and ISSUE_MARKDOWN_PATH for agents.")
@click.option("--git-worktree/--no-git-worktree", default=None, help="Let agents work in a worktree and branch of their own.")
@click.option("--git-worktree-branch", metavar="NAME", help="The name of that branch (orc/RUN).")
@click.option("--git-worktree-ref", metavar="REF", help="The commit that it begins at (the current one).")
@click.option("--git-worktree-keep", is_flag=True, hidden=True, help="Accepted: worktrees stay until `orc prune`.")
@click.option("--pause-for-human-input", is_flag=True, hidden=True, help="Accepted: a step that asks a person always waits.")
@click.option("--daily-cost-limit", metavar="USD", hidden=True, help="The same as --day-budget-usd.")
@click.option("--plan", is_flag=True, help="Print what would run and stop; nothing is created.")
@edits_option
@pr_option
@drive_options(people="a person, or a closed gate,")
@queue_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Run a task, or a workflow.

    A TASK is done by one agent in a worktree of its own, and checked; what fails the check goes back to the agent, up to
    --max-iterations.

    Prints the run id first, then what happens, then the result and what to do next. While a step is waiting for approval
    the command stays. Ctrl-C once lets running agents finish, twice stops them; `orc resume` continues in both cases.
    """
    import msgspec

    from agent_orchestrator.config.defaults import load_configuration
    from agent_orchestrator.runs.workflow.hooks import HOOKS
    from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
    from agent_orchestrator.surfaces.cli.start import start

    if given["day_budget_usd"] is None:
        given["day_budget_usd"] = given["daily_cost_limit"]
    if where := next((name for name in WHERE if given[name] is not None), None):
        if given["git_worktree"] is False:
            raise click.UsageError(f"--{where.replace('_', '-')} and --no-git-worktree exclude each other; give one.", ctx)
        given["git_worktree"] = True
    if given["start_at_step"] is not None and given["git_worktree"]:
        raise click.UsageError("--git-worktree is chosen when a run is made; --start-at-step takes one up again.", ctx)
    with open_to_start(given) as orchestrator:
        options = HOOKS.complete(orchestrator, read_options(WorkflowOptions, given))
        if given["start_at_step"] is not None:  # Whoever works in the run goes on.
            usual = msgspec.structs.replace(options.usual, agent=None, roles={})
            options = msgspec.structs.replace(options, usual=usual)
        settings, configured = orchestrator.settings, load_configuration(orchestrator.settings)
        prepared = prepare(options, settings.home, settings.environ, configured.agents, _kept(orchestrator, given))
        HOOKS.set_budget(prepared.spec, configured.budget.override(read_flag_budget(given)))
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
    from agent_orchestrator.runs.workflow.start import find_earlier
    from agent_orchestrator.surfaces.cli.detach import again_arguments, detach
    from agent_orchestrator.surfaces.cli.start import drive_again, read_manner, take_up_asking, warn_all

    warn_all(prepared.warnings)
    run, manner = find_earlier(orchestrator, prepared.spec, given["run_id"]), read_manner(orchestrator, given)
    if given["detach"]:
        return detach(orchestrator, run, again_arguments(run, ctx.obj), manner)
    owner = orchestrator.own(run.id)
    values = {"start_at": given["start_at_step"], "spec": msgspec.to_builtins(prepared.spec), **options.limits()}
    change = Change(values=values, budget=read_flag_budget(given), shared=given["shared_tree"], edits=given["adopt_edits"])
    taken = take_up_asking(orchestrator, run, change)
    return drive_again(orchestrator, run, owner, taken, manner)
