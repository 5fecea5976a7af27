"""`orc loop list`: the loops of a repository."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc loop list
orc loop list --all --json
"""


def print_loops(repo: str | None, *, all_of_them: bool, as_json: bool) -> int:
    """Lists loops, those that crashed seen and recorded."""
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.loop.files import list_file, say_file
    from agent_orchestrator.runs.loop.start import loops, unknown_files
    from agent_orchestrator.surfaces.cli.runs import say_age
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    with open_orchestrator(repo) as orchestrator:
        found = unknown_files(orchestrator)
        for fault in found.faults:
            warn(str(fault))
        files = {one.taken.name: say_file(orchestrator, one) for one in found.loops}
        known = [*loops(orchestrator), *(list_file(orchestrator, one) for one in found.loops)]
        shown = known if all_of_them else [run for run in known if not run.summary.ended]
        if as_json:
            listed = [{**run_facts(run, orchestrator.owner(run)), **run.summary.facts} for run in shown]
            listed = [{**facts, "only_in": files[facts["run_id"]]} if facts["run_id"] in files else facts for facts in listed]
            print_json({"loops": listed, "total": len(known)})
            return 0
        screen = Screen(orchestrator.settings.environ)
        if not shown:
            ended = "the one" if len(known) == 1 else f"the {len(known)}"
            hidden = f"; `orc loop list --all` shows {ended} that ended" if known else ", `orc loop run` starts one"
            screen.line(f"No loop is active in {orchestrator.settings.home}{hidden}.")
            return 0
        now_us = orchestrator.clock.now_us()
        rows = []
        for run in shown:
            idle = not run.summary.ended and run.summary.status != "paused" and orchestrator.owner(run) is None
            what = "not running" if idle else run.summary.detail or run.name
            what = f"only in {files[run.id]}" if run.id in files else what
            made = f"{run.summary.done}/{run.summary.total}"
            rows.append((run.id, run.summary.status, made, say_age(run.updated_us, now_us), what))
        screen.table(("LOOP", "STATUS", "DONE", "UPDATED", "WHAT"), rows, status=1, whole=0)
    return 0


@make_command("list", EXAMPLE)
@click.option("--all", "all_of_them", is_flag=True, help="Also those that ended.")
def command(repo: str | None, as_json: bool, all_of_them: bool) -> int:
    """List the loops."""
    return print_loops(repo, all_of_them=all_of_them, as_json=as_json)
