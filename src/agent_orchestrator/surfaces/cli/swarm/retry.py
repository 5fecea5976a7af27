"""`orc swarm retry`: tries failed beads again, their attempt numbers going on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.surfaces.cli.options import drive_options, permission_options
from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun

EXAMPLE = """
orc swarm retry bd-101
orc swarm retry 8c1f0a2b --detach
"""


@swarm_command("retry", EXAMPLE)
@target_argument(required=True)
@permission_options
@drive_options(people="")
def command(target: str, workspace: str | None, **given: Any) -> int:
    """Try failed beads again.

    One bead, or all that failed in a run; each gets as many attempts more as it had, told what failed before. In a run that
    has ended, beads that waited for them follow.
    """
    from agent_orchestrator.surfaces.cli.start import read_change

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        return retry(orchestrator, run, bead, read_change(given), given)


def retry(orchestrator: Orchestrator, run: StoredRun, bead: str | None, change: Change, given: dict[str, Any]) -> int:
    """Try a bead again, or all that failed in a run; told to whoever drives it, else done here or in the background."""
    import msgspec

    from agent_orchestrator.core.inputs import Instruct, Resume
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.surfaces.cli.direct import report_sent
    from agent_orchestrator.surfaces.cli.start import drive_again, drive_behind, read_manner, tell_change

    orchestrator.refuse_kept(run)
    state = orchestrator.fold(run).state
    beads = [bead] if bead is not None else [one for one in state.failed if not state.beads[one].released]
    if not beads:
        raise Refused(why=f"No bead of run {run.id} failed; there is nothing to try again.")
    if not run.summary.ended and orchestrator.owner(run) is not None:
        tell_change(orchestrator, run, change)
        sent = send_and_wait(orchestrator, run, Instruct(id=new_id(), what="retry", values={"beads": beads}))
        text = f"Run {run.id} tries again: {', '.join(beads[:8])}, in {sent.owner}."
        return report_sent(orchestrator, run, sent, text, as_json=given["as_json"])
    change, manner = msgspec.structs.replace(change, values={"retry": beads}), read_manner(orchestrator, given)
    if given["detach"]:
        tell_change(orchestrator, run, change)
        orchestrator.send(run, Resume(id=new_id(), changes=change.values))
        return drive_behind(orchestrator, run, manner)
    owner = orchestrator.own(run.id)
    taken = take_up(orchestrator, orchestrator.find(run.id), change)
    return drive_again(orchestrator, run, owner, taken, manner)
