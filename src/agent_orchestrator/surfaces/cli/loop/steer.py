"""`orc loop steer`: puts a sentence first into the next prompt."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.loop.shared import pick_loop
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs, open_orchestrator

EXAMPLE = """
orc loop steer ralph-fix-tests-a1b2c3d4 "leave the parser alone, the fault is in the lexer"
"""


@make_command("steer", EXAMPLE)
@click.argument("loop", shell_complete=complete_runs)
@click.argument("text")
def command(loop: str, text: str, repo: str | None, as_json: bool) -> int:
    """Tell a loop's agent something, once.

    It stands first in the prompt of the next iteration.
    """
    from agent_orchestrator.core.inputs import Steer
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent

    with open_orchestrator(repo) as orchestrator:
        run = pick_loop(orchestrator, loop, None)
        sent = send_and_wait(orchestrator, run, Steer(id=new_id(), text=text))
        return report_sent(orchestrator, run, sent, f"Loop {run.id} will be told in its next iteration.", as_json=as_json)
