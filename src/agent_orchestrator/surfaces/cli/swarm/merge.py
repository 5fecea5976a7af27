"""`orc swarm merge`: brings the branches of beads that are done into one, tested before each lands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.swarm.shared import mergeable, open_workspace, pick_swarm_run, swarm_command, target_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.systems.swarm.state import SwarmState

EXAMPLE = """
orc swarm merge bd-101 --check "make test"
orc swarm merge 8c1f0a2b --into develop
"""


@swarm_command("merge", EXAMPLE)
@target_argument(required=True)
@click.option("--into", metavar="BRANCH", help="The target; without it, the branch that the repository is on.")
@click.option("--check", metavar="CMD", help="Must pass on the merged tree before a merge lands.")
def command(target: str, workspace: str | None, as_json: bool, into: str | None, check: str | None) -> int:
    """Merge the branches of beads that are done.

    One bead, or all of a run that have a branch and are not merged, one after another. What an agent left uncommitted is
    committed first. Nothing of the user's is overwritten; what does not land says why. Exits with 1 when any did not.
    """
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        orchestrator.refuse_kept(run)
        if not run.summary.ended and orchestrator.owner(run) is None:
            ways = f"go on with `orc resume {run.id}`, or end it with `orc swarm stop {run.id}`"
            raise Refused(why=f"Run {run.id} is not over, and nobody drives it; {ways}, and merge then.")
        state = orchestrator.fold(run).state
        beads = [bead] if bead is not None else mergeable(state)
        if not beads:
            raise Refused(why=f"No bead of run {run.id} is done on a branch of its own that is not merged yet.")
        into = into if into is not None else _current(state, beads)
        _perform(orchestrator, run, beads, {"into": into, "check": check})
        jobs = {one: orchestrator.fold(run).state.beads[one].merge for one in beads}
        merged = [one for one, job in jobs.items() if job is not None and job.verdict == "landed"]
        if as_json:
            found = [_facts(one, job) for one, job in jobs.items()]
            print_json({"run_id": run.id, "into": into, "merged": len(merged), "beads": found})
        else:
            screen = Screen(orchestrator.settings.environ)
            for one, job in jobs.items():
                verdict = job.verdict if job is not None and job.verdict is not None else "in line"
                detail = f": {job.detail}" if job is not None and job.detail else ""
                screen.line(f"{one} {verdict}{detail}")
            screen.line(f"{len(merged)} of {len(beads)} merged into {into}")
    return 0 if len(merged) == len(beads) else 1


def _facts(bead: str, job: Any) -> dict[str, Any]:
    import msgspec

    return {"bead": bead, **(msgspec.to_builtins(job) if job is not None else {})}


def _current(state: SwarmState, beads: list[str]) -> str:
    from pathlib import Path

    from agent_orchestrator.errors import Refused
    from agent_orchestrator.git.branches import find_branch

    found = {find_branch(Path(state.specs[bead].repo)) for bead in beads}
    if len(found) != 1 or None in found:
        raise Refused(why="It is not clear what to merge into: name the branch with --into.")
    return str(found.pop())


def _perform(orchestrator: Orchestrator, run: StoredRun, beads: list[str], values: dict[str, Any]) -> None:
    """By whoever drives the run, else here; returns when every merge has an answer."""
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.runs.follow import Follower, pause
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.runs.takeup import take_up
    from agent_orchestrator.surfaces.cli.drive import drive_quietly

    if orchestrator.owner(run) is None:
        owner = orchestrator.own(run.id)
        try:
            taken = take_up(orchestrator, orchestrator.find(run.id), Change(values={"merge": beads, **values}, shared=True))
            drive_quietly(orchestrator, run, taken.inputs, sys.stderr)
        finally:
            owner.release()
        return
    send_and_wait(orchestrator, run, Instruct(id=new_id(), what="merge", values={"beads": beads, **values}))
    follower = Follower(orchestrator, run)
    while any(bead in follower.state.merging for bead in beads) and orchestrator.owner(run) is not None:
        pause()
        follower.read()
