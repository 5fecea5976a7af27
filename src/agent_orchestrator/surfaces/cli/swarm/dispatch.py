"""`orc swarm dispatch`: one bead to one agent, until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import agent_options, pr_option
from agent_orchestrator.surfaces.cli.swarm.shared import bead_options, open_workspace, read_bead_options, swarm_command

if TYPE_CHECKING:
    pass

EXAMPLE = """
orc swarm dispatch bd-101 ~/project claude:sonnet "fix the login bug" bug-fix
orc swarm dispatch bd-102 . codex "add an export" feature --branch export --verify "make test" --detach
"""


@swarm_command("dispatch", EXAMPLE)
@click.argument("bead")
@click.argument("repo")
@click.argument("agent", metavar="AGENT[:MODEL]")
@click.argument("prompt")
@click.argument("template", required=False)
@click.option("--branch", metavar="B", help="Work in a worktree of its own, on this branch.")
@click.option("--force", is_flag=True, help="Also a bead that runs, is done or exhausted, or whose tree is in use.")
@agent_options(time="one attempt (1h)", named=False)
@pr_option
@bead_options
def command(workspace: str | None, **given: Any) -> int:
    """Dispatch one bead to an agent.

    Waits for its end; exits with 0 when it is done, 1 when it failed, 124 when it timed out. Failed attempts are repeated
    up to --max-retries, each told what failed before. TEMPLATE is bug-fix, feature, refactor, docs, script, one of the
    workspace's templates/, or a file.
    """
    from agent_orchestrator.runs.swarm.options import DispatchOptions
    from agent_orchestrator.surfaces.cli.start import start

    with open_workspace(workspace) as orchestrator:
        return start(orchestrator, read_bead_options(DispatchOptions, given), given)
