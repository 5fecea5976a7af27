"""`orc phases check`: lets the supervisor look now."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs
from agent_orchestrator.surfaces.cli.phases.shared import instruct

EXAMPLE = """
orc phases check
orc phases check 2.1
"""


@make_command("check", EXAMPLE)
@click.argument("task", required=False)
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="The run; without it, the newest.")
def command(task: str | None, run: str | None, repo: str | None, as_json: bool) -> int:
    """Let the supervisor look now.

    It looks at TASK, or at the task at work, as soon as no agent works on the tree.
    """
    return instruct(
        repo,
        run,
        "check",
        {"task": task or ""},
        "the supervisor looks as soon as nothing else works on the tree",
        as_json=as_json,
    )
