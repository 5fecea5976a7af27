"""`orc swarm dispatch`: one bead to one agent, until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import agent_options
from agent_orchestrator.surfaces.cli.swarm.shared import bead_options, open_workspace, read_bead_options, swarm_command

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Start, Started
    from agent_orchestrator.systems.swarm.spec import SwarmSpec

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
@bead_options
def command(bead: str, prompt: str, workspace: str | None, **given: Any) -> int:
    """Dispatch one bead to an agent.

    Waits for its end; exits with 0 when it is done, 1 when it failed, 124 when it timed out. Failed attempts are repeated
    up to --max-retries, each told what failed before. TEMPLATE is bug-fix, feature, refactor, docs, script, one of the
    workspace's templates/, or a file.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.swarm.options import prepare_bead
    from agent_orchestrator.runs.swarm.start import start_dispatch
    from agent_orchestrator.surfaces.cli.start import start

    def begin(orchestrator: Orchestrator, spec: SwarmSpec, how: Start) -> Started:
        if how.force:
            _stop_first(orchestrator, bead)
        return start_dispatch(orchestrator, spec, how)

    with open_workspace(workspace) as orchestrator:
        settings = orchestrator.settings
        prepared = prepare_bead(bead, prompt, read_bead_options(given), settings.home, load_agents(settings))
        return start(orchestrator, prepared, begin, given)


def _stop_first(orchestrator: Orchestrator, bead: str) -> None:
    """A dispatch of the bead that is still going on is ended: a bead has one agent at a time."""
    from agent_orchestrator.runs.stop import end_run
    from agent_orchestrator.runs.swarm.start import Swarm

    found = Swarm(orchestrator).find(bead)
    if found is not None and not found.run.summary.ended and found.state.spec.dispatch:
        end_run(orchestrator, found.run, "dispatched anew with --force")
