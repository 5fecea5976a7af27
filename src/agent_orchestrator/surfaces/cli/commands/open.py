"""`orc open`: a shell, an editor or a command where a run's files are."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

EXAMPLE = """
orc open f8c1
orc open f8c1 --command 'make test'
cd "$(orc open f8c1 --path)"
"""


@make_command("open", EXAMPLE)
@run_argument()
@step_argument("unit")
@click.option("--command", "script", metavar="CMD", help="Run this there with sh, instead of a shell for you.")
@click.option("--editor", is_flag=True, help="Start $VISUAL or $EDITOR on the folder.")
@click.option("--path", "path_only", is_flag=True, help="Only print the folder.")
def command(
    run: str | None, unit: str | None, repo: str | None, as_json: bool, script: str | None, editor: bool, path_only: bool
) -> int:
    """Open a shell in a run's working tree.

    A worktree that is gone is made again on the run's branch. Exits with what the shell or the command exits with.
    """
    from agent_orchestrator.errors import UsageError
    from agent_orchestrator.runs.visit import find_folder, visit
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    if sum((script is not None, editor, path_only or as_json)) > 1:
        raise UsageError(detail="--command, --editor and --path exclude each other; give one.")
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run, or_newest=True)
        folder = find_folder(orchestrator, found, unit)
        if as_json:
            print_json({"run_id": found.id, "unit": unit, "path": str(folder)})
            return 0
        if path_only:
            Screen(orchestrator.settings.environ).line(str(folder))
            return 0
        if not found.summary.ended and orchestrator.owner(found) is not None:
            warn(f"run {found.id} is at work, perhaps in this very folder: look, but change nothing its agents are changing")
    return visit(folder, orchestrator.settings.environ, script, editor=editor)
