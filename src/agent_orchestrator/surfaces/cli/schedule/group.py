"""`orc schedule`: runs that are queued by the clock. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

SCHEDULE_COMMANDS = {
    "add": "Queue a run again and again, by the clock.",
    "list": "List the schedules of a repository, and when each is due.",
    "pause": "Pause a schedule: it queues nothing.",
    "resume": "Let a schedule go on with its next due time.",
    "remove": "Remove a schedule.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc schedule add nightly "0 3 * * *" -- run --workflow nightly.yaml --agent-command my-agent
  orc schedule list"""


@click.group("schedule", cls=LazyGroup, helps=SCHEDULE_COMMANDS, folder="schedule", epilog=EXAMPLE)
def command() -> None:
    """Queue runs by the clock, for workers.

    Schedules are kept in the store that workers share, and any worker of the pool makes the run of a due time: one, whoever is
    killed. `orc help cluster` has the page.
    """
