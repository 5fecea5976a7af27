"""`orc rewind`: takes a run back to an earlier point."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc history f8c1 --points
orc rewind f8c1 --to code
orc rewind f8c1 --to checkpoint-002
orc resume f8c1
"""


@make_command("rewind", EXAMPLE)
@run_argument(required=True)
@click.option(
    "--to", metavar="POINT", required=True, help="A step, iteration, checkpoint, bead, group or row of `orc history --points`."
)
@click.option("--now", is_flag=True, help="Stop running agents first.")
def command(run: str, to: str, now: bool, repo: str | None, as_json: bool) -> int:
    """Take a run back to an earlier point.

    State, working tree and branches move together. What is there, uncommitted work included, is kept under a ref first;
    what was spent stays spent. The run is paused afterwards.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.rewind import rewind_run
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found = orchestrator.find(run)
        back = rewind_run(orchestrator, found, to, now=now)
        fresh = orchestrator.store.run(found.id) or found
        if as_json:
            kept = back.kept[0] if back.kept else None
            more = {"point": back.point.name, "row": back.point.seq, "undo": back.before, "refs": list(back.kept)}
            print_json({**run_facts(fresh), "checkpoint": to, "commit": back.commit, "kept": kept, **more})
        else:
            screen = Screen(orchestrator.settings.environ)
            at = f" ({back.commit[:12]})" if back.commit else ""
            screen.line(f"Run {found.id} is back at {back.point.name}{at}, row {back.point.seq} of its journal.")
            for ref in back.kept:
                screen.line(f"What was there is kept as {ref}; look at it: git diff HEAD {ref}")
            screen.line(f"Continue with: orc resume {found.id}   undo it with: orc rewind {found.id} --to {back.before}")
    return 0
