"""`orc swarm run`: works through a file of beads, several at once, in the order of their dependencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

EXAMPLE = """
orc swarm run beads.jsonl --agent claude:sonnet --max-agents 8 --branch swarm
bd export -o beads.jsonl && orc swarm run beads.jsonl --agent codex --max-agents 4 --branch work --bd-close
"""

HELD_SHOWN = 10


@swarm_command("run", EXAMPLE)
@click.argument("file", type=click.Path())
@click.option("--max-agents", metavar="N", required=True, help="How many agents may work at once.")
@click.option("--stop-after-failures", metavar="N", help="Begin no other bead when so many have failed.")
@click.option("--agent", metavar="NAME[:MODEL]", help="Who works on beads that name nobody.")
@click.option("--repo", metavar="DIR", help="Where beads are worked on that name no repository; the workspace without it.")
@click.option("--branch", "prefix", metavar="PREFIX", help="Each bead in a worktree of its own, on branch PREFIX/<bead>.")
@click.option("--template", metavar="NAME", help="For beads that name none.")
@click.option("--force", is_flag=True, help="Also beads that are done or exhausted; beads may share a working tree.")
@bead_options
@budget_options
@driving_options
def command(file: str, workspace: str | None, force: bool, **given: Any) -> int:
    """Work through a file of beads.

    One JSON object a line: id, prompt, and optionally priority (0 first), depends_on, agent, repo, branch, template, vars,
    verify, timeout, max_retries; or what `bd export` writes. A bead starts when everything it depends on is done.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.swarm.options import prepare_file, with_branches
    from agent_orchestrator.runs.swarm.start import start_run
    from agent_orchestrator.surfaces.cli.screen import warn

    failures = given["stop_after_failures"]
    options = read_run_options(
        given,
        max_agents=read_count(given["max_agents"], "--max-agents"),
        stop_after_failures=read_count(failures, "--stop-after-failures") if failures is not None else None,
    )
    path = Path(file).expanduser()
    with open_workspace(workspace) as orchestrator:
        settings = orchestrator.settings
        prepared = prepare_file(path, read_bead_options(given), settings.home, load_agents(settings))
        for bead, why in list(prepared.held.items())[:HELD_SHOWN]:
            warn(f"{bead} is held back: {why}.")
        if len(prepared.held) > HELD_SHOWN:
            warn(f"… and {len(prepared.held) - HELD_SHOWN} more are held back.")
        if not prepared.beads:
            raise Refused(why=f"There is nothing to do in {path}: no bead of it is ready.")
        beads = with_branches(prepared.beads, given["prefix"]) if given["prefix"] is not None else prepared.beads
        budget = read_run_budget(orchestrator, given)
        refuse_unmetered(budget, [bead.agent for bead in beads])
        pass_env = tuple(given["pass_env"])
        started = start_run(
            orchestrator,
            beads,
            options,
            name=path.stem[:80],
            force=force,
            shared=given["shared_tree"],
            pass_env=pass_env,
            budget=budget,
        )
        return drive_started(orchestrator, started, read_manner(given), detach=given["detach"])
