"""`orc phases skip`: leaves a task out."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs
from agent_orchestrator.surfaces.cli.phases.shared import instruct

EXAMPLE = """
orc phases skip 2.1
orc phases skip 2.1 --why "done by hand"
"""


@make_command("skip", EXAMPLE)
@click.argument("task")
@click.option("--why", metavar="TEXT", default="", help="The reason, for the warnings of the run.")
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="The run; without it, the newest.")
def command(task: str, why: str, run: str | None, repo: str | None, as_json: bool) -> int:
    """Leave a task out, with what depends on it.

    A task at work is stopped with `orc pause --now` first. What it left in the tree is committed by itself.
    """
    return instruct(repo, run, "skip", {"task": task, "why": why}, f"task {task} is skipped", as_json=as_json)
