"""`orc resume`: goes on with a run, here, or by telling whoever drives it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.surfaces.cli.budget import budget_arguments, budget_options, read_flag_budget
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import (
    open_orchestrator,
    permission_arguments,
    permission_options,
    pick,
    read_permissions,
    run_argument,
    shared_tree_option,
)
from agent_orchestrator.surfaces.cli.phases.shared import publish_arguments, publish_option

if TYPE_CHECKING:
    from agent_orchestrator.core.budget import Budget
    from agent_orchestrator.runs.choices import Permissions
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner

EXAMPLE = """
orc resume f8c1
orc resume f8c1 --max-attempts 4
orc resume f8c1 --budget-usd 20
orc resume f8c1 --allow-tool 'Bash(make:*)'
orc resume f8c1 --adopt-changes
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
@click.option("--adopt-changes", is_flag=True, help="Take what changed in the workflow file since the run began.")
@click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person, or a closed gate, can move the run.")
@click.option("--detach", is_flag=True, help="Go on in the background.")
@click.option("--on-wait", metavar="CMD", help="A shell command started when a step begins to wait for a person.")
@click.option("--on-end", metavar="CMD", help="A shell command started when the run ends.")
@click.option("--quiet", is_flag=True, help="Only the run id and the result.")
def command(run: str | None, repo: str | None, as_json: bool, detach: bool, **given: Any) -> int:
    """Go on with a run.

    After a pause, a crash or a kill: agents that lived on are adopted, those that ended meanwhile are collected. After
    a failure the failed steps are tried again, counted from 0. A state file edited by hand is adopted now; what changed in the
    workflow file is said, and taken with --adopt-changes: steps that are done stay as they are.
    """
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.surfaces.cli.drive import Manner
    from agent_orchestrator.surfaces.cli.words import words_of

    asked = Asked(
        limits={
            name: read_count(given[name], "--" + name.replace("_", "-"))
            for name in ("max_parallel", "max_attempts", "max_iterations")
            if given[name] is not None
        },
        budget=read_flag_budget(given),
        publish=given["publish"],
        permissions=read_permissions(given),
        adopt=given["adopt_changes"],
        shared=given["shared_tree"],
    )
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        manner = Manner(as_json=as_json, **{name: given[name] for name in ("quiet", "no_wait", "on_wait", "on_end")})
        owner = orchestrator.owner(found)
        if owner is not None:
            return _tell_driver(orchestrator, found, owner, asked, as_json=as_json)
        try_again = words_of(found.system).try_again
        if found.summary.ended and asked.permissions.any and try_again is not None:
            return try_again(orchestrator, found, asked, manner, detach=detach)
        if detach:
            return _resume_behind(orchestrator, found, asked, manner, given)
        return _resume_here(orchestrator, found, asked, manner)


class Asked(NamedTuple):
    """What a run is to go on with."""

    limits: dict[str, int]
    budget: Budget
    publish: bool | None
    permissions: Permissions
    adopt: bool
    shared: bool


def _resume_behind(orchestrator: Orchestrator, run: StoredRun, asked: Asked, manner: Manner, given: dict[str, Any]) -> int:
    from agent_orchestrator.runs.hooks import hooks_of
    from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments
    from agent_orchestrator.surfaces.cli.screen import warn

    hooks = hooks_of(run.system)
    hooks.publish(orchestrator, run, asked.publish)
    for note in hooks.go_on(orchestrator, run, {}, adopt=asked.adopt).changes(orchestrator.fold(run).state)[1]:
        warn(note)
    arguments = [*resume_arguments(run, manner, asked.limits), *budget_arguments(given), *publish_arguments(given)]
    arguments += [*permission_arguments(given), *(["--adopt-changes"] if asked.adopt else [])]
    arguments += ["--shared-tree"] if asked.shared else []
    return detach(orchestrator, run, arguments, manner)


def _resume_here(orchestrator: Orchestrator, run: StoredRun, asked: Asked, manner: Manner) -> int:
    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.progress import Writer
    from agent_orchestrator.surfaces.cli.screen import warn

    owner = orchestrator.own(run.id)
    run = orchestrator.find(run.id)
    taken = take_up(
        orchestrator,
        run,
        asked.limits or None,
        asked.budget,
        publish=asked.publish,
        permissions=asked.permissions,
        shared=asked.shared,
        adopt=asked.adopt,
    )
    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"run {run.id}")
    for note in taken.notes:
        warn(note)
    return drive(orchestrator, run, owner, manner, taken.inputs)


def _tell_driver(orchestrator: Orchestrator, run: StoredRun, owner: str, asked: Asked, *, as_json: bool) -> int:
    """A paused run that still drains is told to go on; one that runs is busy."""
    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.runs.hooks import hooks_of
    from agent_orchestrator.surfaces.cli.direct import Sent, new_id, report_sent, send_and_wait, tell_budget, tell_permissions
    from agent_orchestrator.surfaces.cli.screen import warn

    if asked.adopt:
        why = f"Run {run.id} is driven by {owner}; stop it with `orc pause {run.id} --now`, then resume it with --adopt-changes."
        raise Refused(why=why)
    running = orchestrator.fold(run).state.lifecycle.running
    published, notes = hooks_of(run.system).publish(orchestrator, run, asked.publish)
    changes: dict[str, Any] = {**asked.limits, **published}
    if running and not changes and not asked.budget.is_set and not asked.permissions.any:
        raise RunBusy(run=run.id, owner=owner)
    for note in notes:
        warn(note)
    sent = tell_permissions(orchestrator, run, asked.permissions)
    sent = tell_budget(orchestrator, run, asked.budget) or sent
    if changes or not running:
        sent = send_and_wait(orchestrator, run, Resume(id=new_id(), changes=changes))
    sent = sent or Sent(directive="", taken=True, owner=owner)  # Its agents may do all of it already.
    return report_sent(orchestrator, run, sent, f"Run {run.id} goes on; {owner} drives it.", as_json=as_json)
