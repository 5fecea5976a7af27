"""`orc swarm`: beads dispatched to agents. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

SWARM_COMMANDS = {
    "dispatch": "Dispatch one bead to an agent.",
    "run": "Work through a file of beads.",
    "init": "Write schemas and scripts into a workspace.",
    "status": "Show the beads.",
    "watch": "Follow a run until it ends.",
    "logs": "Show what a bead's agent said and did.",
    "attach": "Join a bead's tmux session, or follow its output.",
    "retry": "Try failed beads again.",
    "stop": "Stop a bead or a run.",
    "merge": "Merge the branches of beads that are done.",
    "validate": "Validate records against their schemas.",
    "analyze": "Report on all runs: figures, comparisons, advice.",
}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc swarm dispatch bd-101 ~/project claude:sonnet "fix the login bug" bug-fix
  orc swarm run beads.jsonl --agent claude:sonnet --max-agents 8 --branch swarm
  orc swarm analyze --since 2026-02-11"""


@click.group("swarm", cls=LazyGroup, helps=SWARM_COMMANDS, folder="swarm", epilog=EXAMPLE)
def command() -> None:
    """Dispatch beads to agents.

    A bead is one task for one agent. Every attempt leaves a run record and a result record under `state/` of the
    workspace, which is the current directory unless --workspace names another.
    """
