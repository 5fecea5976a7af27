"""`orc rewind`: takes a run and its branch back to a checkpoint."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc rewind f8c1 --to checkpoint-002
orc resume f8c1
"""


@make_command("rewind", EXAMPLE)
@run_argument(required=True)
@click.option("--to", metavar="CHECKPOINT", required=True, help="As in checkpoint-002.")
def command(run: str, to: str, repo: str | None, as_json: bool) -> int:
    """Take a run and its branch back to a checkpoint.

    State and git move together; what was not committed is kept under a ref first. The run is paused afterwards.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.phases.start import rewind
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found = orchestrator.find(run)
        commit, ref = rewind(orchestrator, found, to)
        if as_json:
            fresh = orchestrator.store.run(found.id) or found
            print_json({**run_facts(fresh), "checkpoint": to, "commit": commit, "kept": ref})
        else:
            screen = Screen(orchestrator.settings.environ)
            screen.line(f"Run {found.id} is back at {to} ({commit[:12]}); what was there is kept as {ref}.")
            screen.line(f"Go on with: orc resume {found.id}")
    return 0
