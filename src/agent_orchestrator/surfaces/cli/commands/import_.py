"""`orc import`: makes a run of a state file that has no journal here, and says what it changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import choice_options, open_orchestrator
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.runs.imports import TakenOver

EXAMPLE = """
orc import .agents/runs/f8c1a491 --workflow workflow.yaml --wrapper wrapper.py
orc import .aiwg/ralph/loops/ralph-fix-tests-a1b2c3d4
orc import .claude/agent-state.json --document task.md --agent claude
orc import coordination --agent claude --into main
orc import state
"""


@make_command("import", EXAMPLE)
@click.argument("path", type=click.Path())
@click.option("--workflow", metavar="FILE", help="The workflow that a run_state.json is a run of.")
@click.option("--document", metavar="DOC", help="The task document that an agent-state.json is a run of.")
@choice_options("performs every step", roles=True, wrapper=True)
@click.option("--into", metavar="BRANCH", help="As for `orc team run`.")
@click.option("--check", metavar="CMD", help="As for `orc team run`.")
@click.option("--no-check", is_flag=True, help="As for `orc team run`.")
@click.option("--allow-unmetered", is_flag=True, help="As for `orc run`.")
def command(path: str, repo: str | None, as_json: bool, **given: Any) -> int:
    """Make a run of a state file without a journal.

    The file may come from another tool or be sloppy: what cannot be used is left out, and said. The run stands still until
    `orc resume`; the file itself is kept as `<file>.imported`.
    """
    from agent_orchestrator.runs.imports import ImportOptions, take_over

    with open_orchestrator(repo) as orchestrator:
        taken = take_over(orchestrator, Path(path).expanduser(), ImportOptions(**given))
    _report(taken, as_json=as_json)
    return 0


def _report(taken: TakenOver, *, as_json: bool) -> None:
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.surfaces.cli.screen import print_json
    from agent_orchestrator.systems import about

    if as_json:
        found = [run_facts(run) for run in taken.runs]
        account = {"taken": list(taken.taken), "changed": list(taken.notes), "left_out": list(taken.left)}
        print_json((found[0] if len(found) == 1 else {"runs": found}) | account)
        return
    for field in taken.taken:
        click.echo(f"taken: {field}")
    for note in taken.notes:
        click.echo(f"changed: {note}")
    for field in taken.left:
        click.echo(f"left out: {field}")
    for run in taken.runs:
        way = (about(run.system).resume_imported or "orc resume {run}").format(run=run.id)
        following = f"; continue with `{way}`" if run.summary.status not in ("completed", "aborted") else ""
        click.echo(f"Run {run.id} is taken over ({run.summary.status}){following}.")
