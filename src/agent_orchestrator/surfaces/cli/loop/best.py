"""`orc loop best`: the best iteration's tree on a branch."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_run
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc loop best ralph-fix-tests-a1b2c3d4
"""


@make_command("best", EXAMPLE)
@loop_argument
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool) -> int:
    """Put the best iteration's tree on a branch.

    The branch is `orc-best/LOOP`; the working tree and the current branch are left alone.
    """
    from agent_orchestrator.runs.loop.start import restore_best
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        run = pick_run(orchestrator, loop, named)
        branch, iteration = restore_best(orchestrator, run)
        if as_json:
            print_json({"run_id": run.id, "iteration": iteration, "branch": branch})
        else:
            screen = Screen(orchestrator.settings.environ)
            screen.line(f"Iteration {iteration} of loop {run.id} is on branch {branch}: git switch {branch}")
    return 0
