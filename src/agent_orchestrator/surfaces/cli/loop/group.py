"""`orc loop`: loops that iterate until a check passes. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

LOOP_COMMANDS = {
    "run": "Start a loop and stay with it.",
    "list": "List the loops.",
    "status": "Show how a loop stands.",
    "pause": "Pause a loop when its iteration ends.",
    "resume": "Continue a loop, or its work.",
    "abort": "Stop a loop for good.",
    "attach": "Follow what a loop does and says.",
    "logs": "Show what a loop's agent said and did.",
    "steer": "Tell a loop's agent something, once.",
    "best": "Put the best iteration's tree on a branch.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc loop run "fix the failing tests" --until "pytest -q" --agent claude
  orc loop status
  orc loop pause && orc loop resume"""


@click.group("loop", cls=LazyGroup, helps=LOOP_COMMANDS, folder="loop", epilog=EXAMPLE)
def command() -> None:
    """Iterate until a check passes.

    An agent works on one task, iteration after iteration, each with a fresh prompt, until a command that is run for it
    passes. LOOP may be left out when one loop is active.
    """
