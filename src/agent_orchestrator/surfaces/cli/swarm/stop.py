"""`orc swarm stop`: ends a bead, or a whole run, for good."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm stop bd-101
orc swarm stop 8c1f0a2b --reason "wrong branch"
"""


@swarm_command("stop", EXAMPLE)
@target_argument()
@click.option("--reason", metavar="TEXT", default="stopped by a person", show_default=True, help="Kept in the record.")
def command(target: str | None, workspace: str | None, as_json: bool, reason: str) -> int:
    """Stop a bead or a run.

    Its agent is stopped, even if orc is not running; its record says failed, aborted. The other beads of a run continue if it is
    running; else nothing is started, and their agents keep running until `orc resume`.
    """
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.runs.directives import new_id
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.stop import direct, end_run
    from agent_orchestrator.runs.swarm.start import OVER
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        state = orchestrator.fold(run).state
        if bead is None or run.summary.facts.get("dispatch"):
            end_run(orchestrator, run, reason)
            said = f"Run {run.id} is stopped."
        else:
            instruction = Instruct(id=new_id(), what="stop", values={"beads": [bead], "reason": reason})
            others = any(state.standing(one) not in OVER for one in state.beads if one != bead)
            over = (lambda found: found.standing(bead) in OVER) if others else None
            elsewhere = direct(orchestrator, run, instruction, over).owner is not None
            said = f"Bead {bead} of run {run.id} is {'being stopped' if elsewhere else 'stopped'}."
            if others and not elsewhere:
                said += f" Nothing is running it now; continue with: orc resume {run.id}"
        if as_json:
            print_json({**run_facts(orchestrator.find(run.id), orchestrator.owner(run)), "bead": bead, "message": said})
        else:
            Screen(orchestrator.settings.environ).line(said)
    return 0
