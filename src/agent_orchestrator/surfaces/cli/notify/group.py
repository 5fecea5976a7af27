"""`orc notify`: whom the configuration tells what happens, and what still waits. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

NOTIFY_COMMANDS = {
    "list": "List who is told what, and what waits.",
    "test": "Send a test message to subscribers.",
    "send": "Send what waits, now.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc notify list
  orc notify send"""


@click.group("notify", cls=LazyGroup, helps=NOTIFY_COMMANDS, folder="notify", epilog=EXAMPLE)
def command() -> None:
    """Show, test and send notifications.

    Subscribers are [[notify]] tables of the configuration: a webhook, Slack, ntfy, the desktop or a program, told when a run
    needs a person, runs out of budget, is parked, fails or is done. `orc help notifications` has the page.
    """
