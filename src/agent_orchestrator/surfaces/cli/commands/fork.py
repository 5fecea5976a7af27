"""`orc fork`: makes a new run of an earlier point of a run."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc history f8c1 --points
orc fork f8c1 --at code
orc fork f8c1 --at review --run-id other-way
"""


@make_command("fork", EXAMPLE)
@run_argument(required=True)
@click.option(
    "--at", metavar="POINT", required=True, help="A step, iteration, checkpoint, bead, group or row of `orc history --points`."
)
@click.option("--run-id", metavar="ID", help="The new run's id; left out, one is made up.")
def command(run: str, at: str, run_id: str | None, repo: str | None, as_json: bool) -> int:
    """Make a new run of an earlier point of a run.

    It has a worktree and branches of its own, as they were at that point, uncommitted work included. The other run is left
    as it is, and may be running. The new one is paused; it spends a budget of its own.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.fork import fork_run
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found = orchestrator.find(run)
        forked = fork_run(orchestrator, found, at, run_id)
        made = forked.run
        if as_json:
            more = {"forked_from": found.id, "point": forked.point.name, "row": forked.point.seq}
            print_json({**run_facts(made), **more, "branches": list(forked.branches), "folders": list(forked.folders)})
        else:
            screen = Screen(orchestrator.settings.environ)
            screen.line(f"run {made.id}")
            screen.line(f"It is run {found.id} as it was at {forked.point.name}, row {forked.point.seq} of its journal.")
            for folder, branch in zip(forked.folders, forked.branches, strict=False):
                screen.line(f"It works in {folder} on branch {branch}.")
            screen.line(f"Continue with: orc resume {made.id}")
    return 0
