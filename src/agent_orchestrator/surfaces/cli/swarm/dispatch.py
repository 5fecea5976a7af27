"""`orc swarm dispatch`: one bead to one agent, until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import budget_options, read_run_budget
from agent_orchestrator.surfaces.cli.swarm.shared import (
    bead_options,
    drive_started,
    driving_options,
    open_workspace,
    read_bead_options,
    read_manner,
    read_run_options,
    swarm_command,
)

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator

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
@bead_options
@budget_options
@driving_options
def command(bead: str, prompt: str, workspace: str | None, force: bool, **given: Any) -> int:
    """Dispatch one bead to an agent.

    Waits for its end; exits with 0 when it is done, 1 when it failed, 124 when it timed out. Failed attempts are repeated
    up to --max-retries, each told what failed before. TEMPLATE is bug-fix, feature, refactor, docs, script, one of the
    workspace's templates/, or a file.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.swarm.options import prepare_bead
    from agent_orchestrator.runs.swarm.start import start_dispatch

    with open_workspace(workspace) as orchestrator:
        settings = orchestrator.settings
        spec = prepare_bead(bead, prompt, read_bead_options(given), settings.home, load_agents(settings))
        options = read_run_options(given)
        budget = read_run_budget(orchestrator, given)
        refuse_unmetered(budget, [spec.agent])
        if force:
            _stop_first(orchestrator, bead)
        pass_env = tuple(given["pass_env"])
        started = start_dispatch(
            orchestrator, spec, options, force=force, shared=given["shared_tree"], pass_env=pass_env, budget=budget
        )
        return drive_started(orchestrator, started, read_manner(given), detach=given["detach"])


def _stop_first(orchestrator: Orchestrator, bead: str) -> None:
    """A dispatch of the bead that is still going on is ended: a bead has one agent at a time."""
    from agent_orchestrator.runs.swarm.start import Swarm
    from agent_orchestrator.surfaces.cli.stop import end_run

    found = Swarm(orchestrator).find(bead)
    if found is not None and not found.run.summary.ended and found.state.spec.dispatch:
        end_run(orchestrator, found.run, "dispatched anew with --force")
