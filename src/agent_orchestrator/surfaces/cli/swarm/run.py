"""`orc swarm run`: works through a file of beads, several at once, in the order of their dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import agent_options, pr_option
from agent_orchestrator.surfaces.cli.swarm.shared import bead_options, open_workspace, read_bead_options, swarm_command

if TYPE_CHECKING:
    pass

EXAMPLE = """
orc swarm run beads.jsonl --agent claude:sonnet --max-agents 8 --branch swarm
bd export -o beads.jsonl && orc swarm run beads.jsonl --agent codex --max-agents 4 --branch work --bd-close
"""


@swarm_command("run", EXAMPLE)
@click.argument("file", type=click.Path())
@click.option("--max-agents", metavar="N", required=True, help="How many agents may work at once.")
@click.option("--stop-after-failures", metavar="N", help="Begin no other bead when so many have failed.")
@click.option("--repo", metavar="DIR", help="Where beads are worked on that name no repository; the workspace without it.")
@click.option("--branch", "prefix", metavar="PREFIX", help="Each bead in a worktree of its own, on branch PREFIX/<bead>.")
@click.option("--template", metavar="NAME", help="For beads that name none.")
@click.option("--force", is_flag=True, help="Also beads that are done or exhausted; beads may share a working tree.")
@agent_options("works on beads that name nobody", time="one attempt (1h)")
@pr_option
@bead_options
def command(workspace: str | None, **given: Any) -> int:
    """Work through a file of beads.

    One JSON object a line: id, prompt, and optionally priority (0 first), depends_on, agent, repo, branch, template, vars,
    verify, timeout, max_retries; or what `bd export` writes. A bead starts when everything it depends on is done.
    """
    from agent_orchestrator.runs.swarm.options import SwarmOptions
    from agent_orchestrator.surfaces.cli.start import start

    with open_workspace(workspace) as orchestrator:
        return start(orchestrator, read_bead_options(SwarmOptions, given), given)
