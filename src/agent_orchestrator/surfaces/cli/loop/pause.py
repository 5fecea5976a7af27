"""`orc loop pause`: between iterations, or at once."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_loop
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc loop pause
orc loop pause ralph-fix-tests-a1b2c3d4 --now
"""


@make_command("pause", EXAMPLE)
@loop_argument
@click.option("--now", is_flag=True, help="Stop the agent; `orc loop resume` continues the same iteration.")
@click.option("--reason", metavar="TEXT", default="asked to pause", show_default=True, help="Kept in the journal.")
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool, now: bool, reason: str) -> int:
    """Pause a loop when its iteration ends.

    A paused loop needs no process; `orc loop resume` continues with the same count.
    """
    from agent_orchestrator.core.inputs import Pause
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent, stop_here

    with open_orchestrator(repo) as orchestrator:
        run = pick_loop(orchestrator, loop, named)
        directive = Pause(id=new_id(), now=now, reason=reason)
        if orchestrator.owner(run) is None:
            return stop_here(orchestrator, run, directive, as_json=as_json)
        sent = send_and_wait(orchestrator, run, directive)
        text = f"Loop {run.id} " + ("is being stopped" if now else "pauses when this iteration ends")
        if not sent.taken:
            text = f"Loop {run.id} was asked to pause; {sent.owner} has not answered yet"
        return report_sent(orchestrator, run, sent, f"{text}. Continue with: orc loop resume {run.id}", as_json=as_json)
