"""Options and arguments of the loop commands, and which loop they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import complete_runs, compose

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

Function = Callable[..., Any]


def loop_argument(function: Function) -> Function:
    """The LOOP argument, by position or as --loop-id."""
    function = click.option("--loop-id", "named", metavar="LOOP", help="The same as LOOP.")(function)
    return click.argument("loop", required=False, shell_complete=complete_runs)(function)


def pick_loop(orchestrator: Orchestrator, loop: str | None, named: str | None, *, or_last: bool = False) -> StoredRun:
    """Find the loop that is meant; left out, the one that is active, or, where it is only looked at, the last, said as such."""
    from agent_orchestrator.runs.loop.start import find_loop
    from agent_orchestrator.surfaces.cli.screen import warn

    if loop is not None and named is not None and loop != named:
        raise click.UsageError("LOOP and --loop-id name two loops; give one.")
    given = loop if loop is not None else named
    found = find_loop(orchestrator, given, or_last=or_last)
    if given is None and found.summary.ended:
        warn(f"no loop is active; the last one was {found.id}")
    return found


limit_options = compose(
    click.option("--max-iterations", metavar="N", help="Iterations at most (200)."),
    click.option("--timeout", metavar="MIN", help="Minutes for the whole loop, pauses left out."),
    click.option("--interactive/--no-interactive", default=None, help="Ask a person before giving up or accepting."),
    click.option("--auto-test/--no-auto-test", default=None, help="Run the tests before completing (on)."),
    click.option("--test-command", metavar="CMD", help="What runs the tests; without it, a detected one."),
    click.option("--checkpoint-interval", metavar="N", help="A checkpoint file every N iterations (1)."),
    click.option("--execution-mode", metavar="MODE", help="default, logged, seeded or strict."),
    click.option("--allow-fewer-tests", is_flag=True, help="Let fewer tests, or changed protected files, complete."),
    click.option("--protect", multiple=True, metavar="PATH", help="Files that must stay as they are; repeatable."),
)
"""Options that a loop is started with and may be given anew when it goes on."""
