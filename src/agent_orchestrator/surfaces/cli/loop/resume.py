"""`orc loop resume`: goes on with a loop, or starts a successor of one that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agent_orchestrator.surfaces.cli.budget import read_flag_budget
from agent_orchestrator.surfaces.cli.loop.shared import (
    agent_options,
    announce,
    detach_loop,
    drive_started,
    driving_options,
    given_arguments,
    limit_options,
    loop_argument,
    pick_loop,
    read_manner,
    read_options,
)
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import (
    open_orchestrator,
    permission_arguments,
    permission_options,
    read_permissions,
    shared_tree_option,
)

if TYPE_CHECKING:
    from agent_orchestrator.core.budget import Budget
    from agent_orchestrator.core.effects import AgentChoice
    from agent_orchestrator.runs.choices import Permissions
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner

EXAMPLE = """
orc loop resume
orc loop resume ralph-fix-tests-a1b2c3d4 --max-iterations 300
"""


@make_command("resume", EXAMPLE)
@loop_argument
@limit_options
@agent_options
@permission_options
@shared_tree_option
@click.option("--force", is_flag=True, help="Start a successor though four loops are active.")
@driving_options
def command(loop: str | None, named: str | None, repo: str | None, **given: Any) -> int:
    """Go on with a loop, or with its work.

    A paused loop goes on with the same count; an agent that lived on is adopted. A loop that failed, was aborted or
    crashed is over: a successor with a new id takes over task, options and count, and the tree as it is.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.loop.options import changes_of, choose_agent

    options = read_options(given)
    changes, budget = changes_of(options), read_flag_budget(given)
    with open_orchestrator(repo) as orchestrator:
        agent = choose_agent(options, load_agents(orchestrator.settings), orchestrator.settings.home)
        run = pick_loop(orchestrator, loop, named)
        return _resume(orchestrator, run, changes, agent, budget, given)


def _resume(
    orchestrator: Orchestrator,
    run: StoredRun,
    changes: dict[str, Any],
    agent: AgentChoice | None,
    budget: Budget,
    given: dict[str, Any],
) -> int:
    import msgspec

    from agent_orchestrator.core.inputs import Resume
    from agent_orchestrator.runs.loop.start import check_going_on
    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.surfaces.cli.direct import new_id, report_sent, send_and_wait, tell_budget, tell_permissions
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.screen import warn

    manner, permissions = read_manner(given), read_permissions(given)
    check_going_on(orchestrator, run, changes, agent, budget)
    if run.summary.ended:
        how = Successor(changes, agent, budget, permissions, force=given["force"], shared=given["shared_tree"])
        return start_successor(orchestrator, run, how, manner, detach=given["detach"])
    more = {**changes, "agent": msgspec.to_builtins(agent)} if agent is not None else changes
    owner = orchestrator.owner(run)
    if owner is not None:
        sent = tell_permissions(orchestrator, run, permissions)
        sent = tell_budget(orchestrator, run, budget) or sent
        if sent is None or more or not orchestrator.fold(run).state.lifecycle.running:
            sent = send_and_wait(orchestrator, run, Resume(id=new_id(), changes=more))
        return report_sent(orchestrator, run, sent, f"Loop {run.id} goes on; {owner} drives it.", as_json=manner.as_json)
    if given["detach"]:
        return detach_loop(orchestrator, run, manner, [*given_arguments(given), *permission_arguments(given)])
    held = orchestrator.own(run.id)
    taken = take_up(
        orchestrator, orchestrator.find(run.id), more or None, budget, permissions=permissions, shared=given["shared_tree"]
    )
    inputs = taken.inputs
    if not any(isinstance(one, Resume) for one in inputs) and orchestrator.fold(run).state.pausing is not None:
        inputs = (*inputs, Resume(id=new_id()))  # It was about to pause when its process went away.
    announce(run, manner)
    for note in taken.notes:
        warn(note)
    return drive(orchestrator, run, held, manner, inputs)


class Successor(NamedTuple):
    """What a successor does otherwise."""

    changes: dict[str, Any]
    agent: AgentChoice | None
    budget: Budget
    permissions: Permissions
    force: bool
    shared: bool


def start_successor(orchestrator: Orchestrator, run: StoredRun, how: Successor, manner: Manner, *, detach: bool) -> int:
    """Starts a loop that goes on with the work of one that ended, here or behind."""
    from agent_orchestrator.runs.loop.start import succeed
    from agent_orchestrator.surfaces.cli.screen import warn

    started = succeed(
        orchestrator,
        run,
        how.changes,
        how.agent,
        how.budget,
        permissions=how.permissions,
        force=how.force,
        shared=how.shared,
    )
    warn(f"loop {run.id} is {run.summary.facts['status']}; {started.run.id} goes on with its work.")
    return drive_started(orchestrator, started, manner, detach=detach)
