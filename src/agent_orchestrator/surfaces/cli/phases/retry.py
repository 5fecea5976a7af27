"""`orc phases retry`: tries a task again."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs
from agent_orchestrator.surfaces.cli.phases.shared import instruct

EXAMPLE = """
orc phases retry 2.1
orc phases retry 2.1 --comments "use the existing module"
"""


@make_command("retry", EXAMPLE)
@click.argument("task")
@click.option("--comments", metavar="TEXT", default="", help="What the agent is told first.")
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="The run; without it, the newest.")
def command(task: str, comments: str, run: str | None, repo: str | None, as_json: bool) -> int:
    """Try a task again that failed or was skipped.

    Its iterations are counted anew; tasks that were skipped with it are done again, too.
    """
    return instruct(repo, run, "retry", {"task": task, "comments": comments}, f"task {task} is tried again", as_json=as_json)
