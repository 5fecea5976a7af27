"""`orc resume`: goes on with a run, here, or by telling whoever drives it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.surfaces.cli.budgets import budget_arguments, budget_options
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, permission_options, pick, run_argument, shared_tree_option
from agent_orchestrator.surfaces.cli.phasing import publish_arguments, publish_option

if TYPE_CHECKING:
    from agent_orchestrator.api.orchestrator import Orchestrator
    from agent_orchestrator.control.choosing import Permissions
    from agent_orchestrator.core.budget import Limits
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.driving import Manner

EXAMPLE = """
orc resume f8c1
orc resume f8c1 --max-attempts 4
orc resume f8c1 --budget-usd 20
orc resume f8c1 --allow-tool 'Bash(make:*)'
"""


@make_command("resume", EXAMPLE)
@run_argument()
@click.option("--max-parallel", metavar="N", help="Steps at work at once, from now on.")
@click.option("--max-attempts", metavar="N", help="Tries of a step within one iteration, from now on.")
@click.option("--max-iterations", metavar="N", help="Executions of a step that loops back, from now on.")
@budget_options
@publish_option
@permission_options
@shared_tree_option
@click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person, or a closed gate, can move the run.")
@click.option("--detach", is_flag=True, help="Go on in the background.")
@click.option("--on-wait", metavar="CMD", help="A shell command started when a step begins to wait for a person.")
@click.option("--on-end", metavar="CMD", help="A shell command started when the run ends.")
@click.option("--quiet", is_flag=True, help="Only the run id and the result.")
def command(run: str | None, repo: str | None, as_json: bool, detach: bool, **given: Any) -> int:
    """Go on with a run.

    After a pause, a crash or a kill: agents that lived on are adopted, those that ended meanwhile are collected. After
    a failure the failed steps are tried again, counted from 0. A state file edited by hand is adopted now.
    """
    from agent_orchestrator.control.budgets import given_limits
    from agent_orchestrator.control.choosing import Permissions
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.surfaces.cli.driving import Manner

    budget = given_limits(given)
    permissions = Permissions(allow_tools=given["allow_tools"], mode=given["permission_mode"])
    limits = {
        name: read_count(given[name], "--" + name.replace("_", "-"))
        for name in ("max_parallel", "max_attempts", "max_iterations")
        if given[name] is not None
    }
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)

        manner = Manner(as_json=as_json, **{name: given[name] for name in ("quiet", "no_wait", "on_wait", "on_end")})
        owner = orchestrator.owner(found)
        if owner is not None:
            refuse_permissions(found, owner, permissions)
            return _tell_driver(orchestrator, found, owner, limits, budget, given["publish"], as_json=as_json)
        if found.system == "phases":
            from agent_orchestrator.api.phases import refuse_other_branch

            refuse_other_branch(orchestrator, found)
        if detach:
            from agent_orchestrator.api.phases import change_publishing
            from agent_orchestrator.surfaces.cli.detach import detach as start_behind
            from agent_orchestrator.surfaces.cli.detach import resume_arguments

            change_publishing(orchestrator, found, given["publish"])
            arguments = [*resume_arguments(found, manner, limits), *budget_arguments(given), *publish_arguments(given)]
            arguments += permission_arguments(given)
            arguments += ["--shared-tree"] if given["shared_tree"] else []
            return start_behind(orchestrator, found, arguments, manner)
        return _resume_here(orchestrator, found, limits, budget, given, permissions, manner)


def permission_arguments(given: dict[str, Any]) -> list[str]:
    """What agents may do besides, as it was given, for another process."""
    tools = [word for tool in given["allow_tools"] for word in ("--allow-tool", tool)]
    return [*tools, *(("--permission-mode", given["permission_mode"]) if given["permission_mode"] is not None else ())]


def refuse_permissions(run: StoredRun, owner: str, permissions: Permissions) -> None:
    """Raises while another process drives the run: permissions are taken when it is taken up."""
    if permissions.allow_tools or permissions.mode is not None:
        why = f"Run {run.id} is driven by {owner}; stop it with `orc pause {run.id}`, then resume it with what agents may do."
        raise Refused(why=why)


def _resume_here(
    orchestrator: Orchestrator,
    run: StoredRun,
    limits: dict[str, int],
    budget: Limits,
    given: dict[str, Any],
    permissions: Permissions,
    manner: Manner,
) -> int:
    from agent_orchestrator.api.takeup import take_up
    from agent_orchestrator.surfaces.cli.driving import drive
    from agent_orchestrator.surfaces.cli.progress import Writer
    from agent_orchestrator.surfaces.cli.screen import warn

    owner = orchestrator.own(run.id)
    run = orchestrator.find(run.id)
    publish, shared = given["publish"], given["shared_tree"]
    taken = take_up(orchestrator, run, limits or None, budget, publish=publish, permissions=permissions, shared=shared)
    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"run {run.id}")
    for note in taken.notes:
        warn(note)
    if run.system == "phases":
        from agent_orchestrator.api.phases import out_of_step

        if (odd := out_of_step(run, orchestrator.fold(run).state)) is not None:
            warn(odd)
    return drive(orchestrator, run, owner, manner, taken.inputs)


def _tell_driver(
    orchestrator: Orchestrator,
    run: StoredRun,
    owner: str,
    limits: dict[str, int],
    budget: Limits,
    publish: bool | None,
    *,
    as_json: bool,
) -> int:
    """A paused run that still drains is told to go on; one that runs is busy."""
    from agent_orchestrator.api.phases import change_publishing
    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.surfaces.cli.directing import new_id, report_sent, send_and_wait, tell_limits
    from agent_orchestrator.surfaces.cli.screen import warn

    running = orchestrator.fold(run).state.lifecycle.running
    published, notes = change_publishing(orchestrator, run, publish)
    changes: dict[str, Any] = {**limits, **published}
    if running and not changes and not budget.any:
        raise RunBusy(run=run.id, owner=owner)
    for note in notes:
        warn(note)
    sent = tell_limits(orchestrator, run, budget)
    if sent is None or changes or not running:
        sent = send_and_wait(orchestrator, run, Resume(id=new_id(), changes=changes))
    return report_sent(orchestrator, run, sent, f"Run {run.id} goes on; {owner} drives it.", as_json=as_json)
