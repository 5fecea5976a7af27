"""`orc loop resume`: goes on with a loop, or starts a successor of one that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.loop.shared import limit_options, loop_argument, pick_loop
from agent_orchestrator.surfaces.cli.options import (
    choice_options,
    drive_options,
    edits_option,
    open_orchestrator,
    permission_options,
    read_options,
)
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun

EXAMPLE = """
orc loop resume
orc loop resume ralph-fix-tests-a1b2c3d4 --max-iterations 300
"""


@make_command("resume", EXAMPLE)
@loop_argument
@limit_options
@choice_options()
@permission_options
@click.option("--force", is_flag=True, help="Start a successor though four loops are active.")
@edits_option
@drive_options("loop")
def command(loop: str | None, named: str | None, repo: str | None, **given: Any) -> int:
    """Continue a loop, or its work.

    A paused loop continues with the same count; an agent that is still running is kept. A loop that failed, was aborted or
    crashed has ended: a successor with a new id takes over task, options and count, and the tree as it is.
    """
    import msgspec

    from agent_orchestrator.config.defaults import load_agents
    from agent_orchestrator.runs.loop.options import LoopOptions, changes_of, choose_agent
    from agent_orchestrator.runs.loop.start import check_going_on
    from agent_orchestrator.surfaces.cli.start import read_change

    options = read_options(LoopOptions, given)
    values = changes_of(options)
    with open_orchestrator(repo) as orchestrator:
        agent = choose_agent(options, orchestrator.settings.home, load_agents(orchestrator.settings))
        values |= {"agent": msgspec.to_builtins(agent)} if agent is not None else {}
        change = read_change(given, values=values, force=given["force"])
        run = pick_loop(orchestrator, loop, named)
        check_going_on(orchestrator, run, change)
        if run.summary.ended:
            return start_successor(orchestrator, run, change, given)
        if (owner := orchestrator.owner(run)) is not None:
            told = _tell_driver(orchestrator, run, owner, change, as_json=given["as_json"])
            if told is not None:
                return told
        return _resume(orchestrator, run, change, given)


def _tell_driver(orchestrator: Orchestrator, run: StoredRun, owner: str, change: Change, *, as_json: bool) -> int | None:
    """Tell a loop that is driven to go on; None if its process left before it read that."""
    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent
    from agent_orchestrator.surfaces.cli.start import tell_change

    sent = tell_change(orchestrator, run, change)
    if sent is None or change.values or not orchestrator.fold(run).state.lifecycle.running:
        sent = send_and_wait(orchestrator, run, Resume(id=new_id(), changes=change.values))
    if sent.owner is None:
        return None
    return report_sent(orchestrator, run, sent, f"Loop {run.id} continues, in {owner}.", as_json=as_json)


def _resume(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    import msgspec

    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.runs.directives import new_id
    from agent_orchestrator.surfaces.cli.start import drive_again, drive_behind, read_manner, take_up_asking

    manner = read_manner(orchestrator, given)
    if given["detach"]:
        return drive_behind(orchestrator, run, manner, given)
    owner = orchestrator.own(run.id)
    taken = take_up_asking(orchestrator, orchestrator.find(run.id), change)
    resumes = any(isinstance(one, Resume) for one in taken.inputs)
    if not resumes and orchestrator.fold(run).state.pausing is not None:
        # It was about to pause when its process went away.
        taken = msgspec.structs.replace(taken, inputs=(*taken.inputs, Resume(id=new_id())))
    return drive_again(orchestrator, run, owner, taken, manner)


def start_successor(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    """Start a loop that goes on with the work of one that ended, here or in the background."""
    from agent_orchestrator.runs.loop.start import succeed
    from agent_orchestrator.surfaces.cli.screen import warn
    from agent_orchestrator.surfaces.cli.start import drive_started

    started = succeed(orchestrator, run, change)
    warn(f"loop {run.id} is {run.summary.facts['status']}; {started.run.id} continues its work.")
    return drive_started(orchestrator, started, given)
