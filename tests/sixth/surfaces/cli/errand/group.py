"""`orc errand`: one command at a time."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup


@click.group("errand", cls=LazyGroup, helps={"run": "Run a command and stay with it."}, folder="errand")
def command() -> None:
    """Run one command."""
