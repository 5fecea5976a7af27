"""`orc swarm retry`: tries failed beads again, their attempt numbers going on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_orchestrator.surfaces.cli.budget import budget_options, read_flag_budget
from agent_orchestrator.surfaces.cli.options import permission_options, read_permissions, shared_tree_option
from agent_orchestrator.surfaces.cli.swarm.shared import (
    drive_behind,
    driving_options,
    open_workspace,
    pick_swarm_run,
    read_manner,
    swarm_command,
    target_argument,
)

if TYPE_CHECKING:
    from agent_orchestrator.core.budget import Budget
    from agent_orchestrator.runs.choices import Permissions
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner

EXAMPLE = """
orc swarm retry bd-101
orc swarm retry 8c1f0a2b --detach
"""


@swarm_command("retry", EXAMPLE)
@target_argument(required=True)
@budget_options
@permission_options
@shared_tree_option
@driving_options
def command(target: str, workspace: str | None, **given: Any) -> int:
    """Try failed beads again.

    One bead, or all that failed in a run; each gets as many attempts more as it had, told what failed before. In a run that
    has ended, beads that waited for them follow.
    """

    manner, budget = read_manner(given), read_flag_budget(given)
    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        permissions, detach = read_permissions(given), given["detach"]
        return retry(orchestrator, run, bead, budget, permissions, manner, detach=detach, shared=given["shared_tree"])


def retry(
    orchestrator: Orchestrator,
    run: StoredRun,
    bead: str | None,
    budget: Budget,
    permissions: Permissions,
    manner: Manner,
    *,
    detach: bool,
    shared: bool,
) -> int:
    """Tries a bead again, or all that failed in a run."""
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.surfaces.cli.direct import tell_permissions

    orchestrator.refuse_kept(run)
    state = orchestrator.fold(run).state
    beads = [bead] if bead is not None else [one for one in state.failed if not state.beads[one].released]
    if not beads:
        raise Refused(why=f"No bead of run {run.id} failed; there is nothing to try again.")
    driven = not run.summary.ended and orchestrator.owner(run) is not None
    if driven or detach:
        tell_permissions(orchestrator, run, permissions)
    if driven:
        return _tell_driver(orchestrator, run, beads, budget, as_json=manner.as_json)
    return _retry_here(orchestrator, run, beads, budget, permissions, manner, detach=detach, shared=shared)


def _tell_driver(orchestrator: Orchestrator, run: StoredRun, beads: list[str], budget: Budget, *, as_json: bool) -> int:
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.surfaces.cli.direct import new_id, report_sent, send_and_wait, tell_budget

    tell_budget(orchestrator, run, budget)
    sent = send_and_wait(orchestrator, run, Instruct(id=new_id(), what="retry", values={"beads": beads}))
    text = f"Run {run.id} tries again: {', '.join(beads[:8])}; {sent.owner} drives it."
    return report_sent(orchestrator, run, sent, text, as_json=as_json)


def _retry_here(
    orchestrator: Orchestrator,
    run: StoredRun,
    beads: list[str],
    budget: Budget,
    permissions: Permissions,
    manner: Manner,
    *,
    detach: bool,
    shared: bool,
) -> int:
    from agent_orchestrator.core.inputs import Resume, SetLimits
    from agent_orchestrator.runs.takeup import refuse_unkept, take_up
    from agent_orchestrator.surfaces.cli.direct import new_id
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.progress import Writer
    from agent_orchestrator.surfaces.cli.screen import warn

    changes = {"retry": beads}
    if detach:
        if budget.is_set:
            refuse_unkept(orchestrator.fold(run), budget)
            orchestrator.send(run, SetLimits(id=new_id(), limits=budget))
        orchestrator.send(run, Resume(id=new_id(), changes=changes))
        return drive_behind(orchestrator, run, manner)
    owner = orchestrator.own(run.id)
    taken = take_up(orchestrator, orchestrator.find(run.id), changes, budget, permissions=permissions, shared=shared)
    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"run {run.id}")
    for note in taken.notes:
        warn(note)
    return drive(orchestrator, run, owner, manner, taken.inputs)
