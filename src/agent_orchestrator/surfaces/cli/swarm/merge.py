"""`orc swarm merge`: `orc merge` for beads, which are named without their run."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

EXAMPLE = """
orc swarm merge bd-101 --check "make test"
orc swarm merge 8c1f0a2b --into develop
"""


@swarm_command("merge", EXAMPLE)
@target_argument(required=True)
@click.option("--into", metavar="BRANCH", help="The target; without it, the branch that the repository is on.")
@click.option("--check", metavar="CMD", help="Must pass on the merged tree before a merge lands; without it, the bead's own.")
@click.option("--no-check", is_flag=True, help="Merge without running anything.")
def command(target: str, workspace: str | None, as_json: bool, **given: Any) -> int:
    """Merge the branches of beads that are done.

    The same as `orc merge RUN [BEAD]`, for a bead by its own name: one bead, or all of a run that have a branch and are not
    merged, one after another. Exits with 1 when any did not land.
    """
    from agent_orchestrator.runs.merge import MergeOptions
    from agent_orchestrator.surfaces.cli.commands.merge import merge

    with open_workspace(workspace) as orchestrator:
        run, bead = pick_swarm_run(orchestrator, target)
        return merge(orchestrator, run, MergeOptions(unit=bead, **given), as_json=as_json)
