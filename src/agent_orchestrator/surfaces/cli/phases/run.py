"""`orc phases run`: executes a task document and stays with it."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import (
    agent_options,
    drive_options,
    pr_option,
    publish_option,
    queue_options,
    read_options,
)
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.queue import open_to_start

EXAMPLE = """
orc phases run task.md --agent claude --max-cost '$10'
orc phases run task.md --agent-command ./agent.sh --yes --allow-unmetered --max-time 2h
orc phases run task.md --agent claude --role supervisor=codex --plan-with claude:opus --allow-unmetered
"""


@make_command("run", EXAMPLE)
@click.argument("document", metavar="DOC")
@agent_options(roles=True)
@click.option("--yes", is_flag=True, help="Approve the plan, and every change of it, beforehand.")
@publish_option
@click.option("--plan-with", metavar="AGENT", help="Let this agent ask its questions about the plan first.")
@click.option("--max-parallel", metavar="N", help="Tasks at work at once (1).")
@click.option("--max-iterations", metavar="N", help="Iterations of a task (the document's bound, or 30).")
@click.option("--max-attempts", metavar="N", help="Tries of one launch that fails (3).")
@click.option("--no-supervisor", is_flag=True, help="Without the supervisor's checks.")
@click.option("--no-outer-ralph", is_flag=True, help="Without the outer review loop.")
@click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in prompts; repeatable.")
@click.option("--run-id", metavar="ID", help="The id of the new run; 8 random hex digits without it.")
@pr_option
@drive_options()
@queue_options
def command(**given: Any) -> int:
    """Execute a task document and stay with it.

    Prints the run id first, then what happens, then the result. The plan is to be approved first, unless --yes is given.
    Ctrl-C once lets running agents finish, twice stops them; `orc resume` continues in both cases.
    """
    from agent_orchestrator.runs.phases.options import PhasesOptions
    from agent_orchestrator.surfaces.cli.start import start

    with open_to_start(given) as orchestrator:
        flags = {**given, "budget_usd": None, "max_time": None}  # They stand in the plan's bounds.
        return start(orchestrator, read_options(PhasesOptions, given), flags)
