"""`orc loop run`: starts a loop and stays with it."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.budget import read_run_budget
from agent_orchestrator.surfaces.cli.loop.shared import (
    agent_options,
    drive_started,
    driving_options,
    limit_options,
    read_manner,
    read_options,
)
from agent_orchestrator.surfaces.cli.options import (
    check_names,
    idle_option,
    open_orchestrator,
    permission_options,
    shared_tree_option,
)
from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc loop run "fix the failing tests" --until "pytest -q" --agent claude
orc loop run --task-file task.md --until "make check" --agent-command 'my-agent' --max-iterations 20 --timeout 60
orc loop run "write the guide" --completion "the guide covers every command" --agent codex --confirm-with claude
"""


def start(given: dict[str, Any]) -> int:
    """Starts a loop from the options given; also what `aiwg ralph` does."""
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.loop.options import checked_loop_id, prepare
    from agent_orchestrator.runs.loop.start import start_loop

    with open_orchestrator(given["repo"]) as orchestrator:
        spec = prepare(read_options(given), orchestrator.settings.home, load_agents(orchestrator.settings))
        budget = read_run_budget(orchestrator, given)
        refuse_unmetered(budget, spec.choices)
        loop = checked_loop_id(given["loop_id"]) if given["loop_id"] is not None else None
        started = start_loop(
            orchestrator,
            spec,
            loop=loop,
            worktree=given["git_worktree"],
            force=given["force"],
            shared=given["shared_tree"],
            pass_env=tuple(given["pass_env"]),
            budget=budget,
        )
        return drive_started(orchestrator, started, read_manner(given), detach=given["detach"])


def run_options(function: Any) -> Any:
    """Everything a loop can be started with."""
    options = (
        click.argument("task", required=False),
        click.option("--task-file", metavar="FILE", help="The task, from a file."),
        click.option("--until", metavar="CMD", help="Done when this command exits with 0; run by sh after each iteration."),
        click.option("--completion", metavar="TEXT", help='Done when: a command ("npm test passes") or a sentence.'),
        agent_options,
        permission_options,
        click.option("--confirm-with", metavar="AGENT", help="Who confirms a sentence: an agent or `person`."),
        limit_options,
        click.option("--iteration-timeout", metavar="TIME", help="Running time of one iteration's agent, as in 90s, 10m."),
        idle_option,
        click.option("--continue-session", is_flag=True, help="Go on in the agent's session instead of a fresh one."),
        click.option("--seed", metavar="N", help="For the modes seeded and strict: handed on as LOOP_SEED."),
        click.option("--commit", is_flag=True, help="Commit each iteration on the branch, with trailers."),
        click.option("--git-worktree", is_flag=True, help="Work in a worktree and branch of its own."),
        click.option("--env", multiple=True, metavar="K=V", help="Set for the agent; stored with the loop; repeatable."),
        click.option(
            "--pass-env", multiple=True, metavar="NAME", callback=check_names, help="Let the agent see this variable; repeatable."
        ),
        click.option("--loop-id", metavar="ID", help="The id of the new loop; made of the task without it."),
        shared_tree_option,
        click.option("--force", is_flag=True, help="Start it though four loops are active."),
        driving_options,
    )
    for option in reversed(options):
        function = option(function)
    return function


@make_command("run", EXAMPLE)
@run_options
def command(**given: Any) -> int:
    """Start a loop and stay with it.

    Prints the loop id first, then what happens, then the result. Ctrl-C once pauses when the iteration is over, twice at
    once; `orc loop resume` goes on in both cases. A check that passes before the first iteration completes the loop.
    """
    return start(given)
