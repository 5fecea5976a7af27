"""`orc loop run`: starts a loop and stays with it."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.loop.shared import limit_options
from agent_orchestrator.surfaces.cli.options import agent_options, drive_options, pr_option, queue_options, read_options
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.queue import open_to_start

EXAMPLE = """
orc loop run "fix the failing tests" --until "pytest -q" --agent claude
orc loop run --task-file task.md --until "make check" --agent-command 'my-agent' --max-iterations 20 --timeout 60
orc loop run "write the guide" --completion "the guide covers every command" --agent codex --confirm-with claude
"""


@make_command("run", EXAMPLE)
@click.argument("task", required=False)
@click.option("--task-file", metavar="FILE", help="The task, from a file.")
@click.option("--until", metavar="CMD", help="Done when this command exits with 0; run by sh after each iteration.")
@click.option("--completion", metavar="TEXT", help='Done when: a command ("npm test passes") or a sentence.')
@agent_options(timeout="--iteration-timeout", time="one iteration's agent")
@click.option("--confirm-with", metavar="AGENT", help="Who confirms a sentence: an agent or `person`.")
@limit_options
@click.option("--continue-session", is_flag=True, help="Continue the agent's session instead of starting a fresh one.")
@click.option("--memory", metavar="N", help="Tell agents at most N lessons of earlier loops here (20); 0 for none.")
@click.option("--seed", metavar="N", help="For the modes seeded and strict: handed on as LOOP_SEED.")
@click.option("--commit", is_flag=True, help="Commit each iteration on the branch, with trailers.")
@click.option("--git-worktree/--no-git-worktree", default=None, help="Work in a worktree and branch of its own.")
@click.option("--loop-id", "run_id", metavar="ID", help="The id of the new loop; made of the task without it.")
@click.option("--force", is_flag=True, help="Start it though four loops are active.")
@pr_option
@drive_options("loop")
@queue_options
def command(**given: Any) -> int:
    """Start a loop and stay with it.

    Prints the loop id first, then what happens, then the result. Ctrl-C once pauses when the iteration ends, twice at
    once; `orc loop resume` continues in both cases. A check that passes before the first iteration completes the loop.
    """
    from agent_orchestrator.runs.loop.options import LoopOptions
    from agent_orchestrator.surfaces.cli.start import start

    with open_to_start(given) as orchestrator:
        return start(orchestrator, read_options(LoopOptions, given), given)
