"""`orc resume`: goes on with a run, here, or by telling whoever drives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import (
    drive_options,
    edits_option,
    open_orchestrator,
    permission_options,
    pick,
    publish_option,
    queue_options,
    run_argument,
)

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun

EXAMPLE = """
orc resume f8c1
orc resume f8c1 --max-attempts 4
orc resume f8c1 --budget-usd 20
orc resume f8c1 --allow-tool 'Bash(make:*)'
orc resume f8c1 --adopt-changes
orc resume f8c1 --queue
"""


@make_command("resume", EXAMPLE)
@run_argument()
@click.option("--max-parallel", metavar="N", help="Steps at work at once, from now on.")
@click.option("--max-attempts", metavar="N", help="Tries of a step within one iteration, from now on.")
@click.option("--max-iterations", metavar="N", help="Executions of a step that loops back, from now on.")
@publish_option
@permission_options
@click.option("--adopt-changes", is_flag=True, help="Take what changed in the workflow file since the run began.")
@edits_option
@drive_options(people="a person, or a closed gate,")
@queue_options
def command(run: str | None, repo: str | None, **given: Any) -> int:
    """Continue a run.

    After a pause, a crash or a kill: agents that lived on are adopted, those that ended meanwhile are collected. After
    a failure the failed steps are tried again, counted from 0. A state file that was edited is shown, and adopted when a person
    says so: at the terminal, or by --adopt-edits; else the command ends with 4 and changes nothing. What changed in the
    workflow file is said, and taken with --adopt-changes: steps that are done stay as they are.
    """
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.surfaces.cli.queue import queue_again, wants_queue
    from agent_orchestrator.surfaces.cli.start import read_change
    from agent_orchestrator.surfaces.cli.words import words_of

    values = {
        name: read_count(given[name], "--" + name.replace("_", "-"))
        for name in ("max_parallel", "max_attempts", "max_iterations")
        if given[name] is not None
    }
    change = read_change(given, values=values, publish=given["publish"], adopt=given["adopt_changes"])
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        if (owner := orchestrator.owner(found)) is not None:
            told = _tell_driver(orchestrator, found, owner, change, as_json=given["as_json"])
            if told is not None:
                return told
        if wants_queue(given):
            return queue_again(orchestrator, found, change, given)
        try_again = words_of(found.system).try_again
        if found.summary.ended and change.permissions.any and try_again is not None:
            return try_again(orchestrator, found, change, given)
        if given["detach"]:
            return _resume_behind(orchestrator, found, change, given)
        return _resume_here(orchestrator, found, change, given)


def _resume_behind(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    from agent_orchestrator.runs.hooks import hooks_of
    from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments
    from agent_orchestrator.surfaces.cli.start import read_manner, warn_all

    manner, hooks = read_manner(orchestrator, given), hooks_of(run.system)
    hooks.publish(orchestrator, run, change.publish)
    warn_all(hooks.go_on(orchestrator, run, {}, adopt=change.adopt).compare(orchestrator.fold(run).state)[1])
    return detach(orchestrator, run, resume_arguments(run, manner, given), manner)


def _resume_here(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    from agent_orchestrator.surfaces.cli.start import drive_again, read_manner, take_up_asking

    owner = orchestrator.own(run.id)
    run = orchestrator.find(run.id)
    taken = take_up_asking(orchestrator, run, change)
    return drive_again(orchestrator, run, owner, taken, read_manner(orchestrator, given))


def _tell_driver(orchestrator: Orchestrator, run: StoredRun, owner: str, change: Change, *, as_json: bool) -> int | None:
    """Tell a paused run that still drains to go on; one that runs is busy. None if its process left before it read that."""
    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.runs.directives import Sent, new_id, send_and_wait
    from agent_orchestrator.runs.hooks import hooks_of
    from agent_orchestrator.surfaces.cli.direct import report_sent
    from agent_orchestrator.surfaces.cli.start import tell_change, warn_all

    if change.adopt or change.edits:
        flag = "--adopt-changes" if change.adopt else "--adopt-edits"
        why = f"Run {run.id} is running in {owner}; stop it with `orc pause {run.id} --now`, then resume it with {flag}."
        raise Refused(why=why)
    running = orchestrator.fold(run).state.lifecycle.running
    published, notes = hooks_of(run.system).publish(orchestrator, run, change.publish)
    changes: dict[str, Any] = {**change.values, **published}
    if running and not changes and not change.budget.is_set and not change.permissions.any:
        raise RunBusy(run=run.id, owner=owner)
    warn_all(notes)
    sent = tell_change(orchestrator, run, change)
    if changes or not running:
        sent = send_and_wait(orchestrator, run, Resume(id=new_id(), changes=changes))
    sent = sent or Sent(directive="", taken=True, owner=owner)  # Its agents may do all of it already.
    if sent.owner is None:
        return None
    return report_sent(orchestrator, run, sent, f"Run {run.id} continues, in {owner}.", as_json=as_json)
