"""`orc errand run`: runs a command and stays with it."""

from __future__ import annotations

import click

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.surfaces.cli.drive import Manner, drive
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator
from agent_orchestrator.systems import find_system


@make_command("run", "orc errand run 'make test'")
@click.argument("line")
@click.option("--run-id", required=True)
def command(line: str, run_id: str, repo: str | None, as_json: bool) -> int:
    """Run a command and stay with it."""
    with open_orchestrator(repo) as orchestrator:
        system, home = find_system("errand"), str(orchestrator.settings.home)
        context = Context(run=RunId(run_id), home=home, workdir=home, created_us=orchestrator.clock.now_us())
        owner = orchestrator.own(run_id)
        run = orchestrator.create(system, system.spec_type(command=line), line, context)
        return drive(orchestrator, run, owner, Manner(as_json=as_json))
