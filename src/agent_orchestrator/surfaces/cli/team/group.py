"""`orc team`: a project manager, developers, QA and a tech lead. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

TEAM_COMMANDS = {
    "run": "Start a team and stay with it.",
    "status": "Show how a team stands.",
    "watch": "Follow a team until it ends.",
    "messages": "Print the messages between the roles.",
    "answer": "Answer what the project manager asks.",
    "approve": "Approve what a team asks a person.",
    "add": "Ask a running team for one thing more.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc team run "JWT login, registration, password reset" --agent claude --check "pytest -q"
  orc team status
  orc team answer "tokens live for an hour"
  orc resume v4_20250106_100000"""


@click.group("team", cls=LazyGroup, helps=TEAM_COMMANDS, folder="team", epilog=EXAMPLE)
def command() -> None:
    """Let a team of agents build what is required.

    A project manager plans groups of tasks; each is developed on a branch of its own, tested, reviewed and merged, tested
    again on the merged tree. TEAM may be left out: it is the unfinished one, else the newest. `orc pause`, `orc resume`
    and `orc abort` work for teams as for all runs.
    """
