"""`orc list`: the runs of a repository, one line each."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc list
orc list --limit 100 --json
"""


@make_command("list", EXAMPLE)
@click.option("--limit", metavar="N", default="20", show_default=True, help="How many, newest first; 0 lists all.")
def command(repo: str | None, as_json: bool, limit: str) -> int:
    """List the runs of a repository."""
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.store.port import Which
    from agent_orchestrator.surfaces.cli.runs import print_runs
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    most = read_count(limit, "--limit", minimum=0)
    with open_orchestrator(repo) as orchestrator:
        total = orchestrator.count().total
        shown = orchestrator.runs(Which(most=most or None))
        if as_json:
            print_json({"runs": [run_facts(run, orchestrator.owner(run)) for run in shown], "total": total})
            return 0
        screen = Screen(orchestrator.settings.environ)
        if not total:
            screen.line(f"There are no runs in {orchestrator.settings.home}; `orc run` starts one.")
            return 0
        print_runs(orchestrator, screen, shown)
        if len(shown) < total:
            screen.line(f"… and {total - len(shown)} older; `orc list --limit 0` lists all.")
    return 0
