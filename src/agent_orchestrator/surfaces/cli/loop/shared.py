"""What the loop commands share: which loop is meant, how it is driven, and what is told at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.budget import budget_arguments, budget_options
from agent_orchestrator.surfaces.cli.options import complete_runs

if TYPE_CHECKING:
    from agent_orchestrator.runs.loop.options import LoopOptions
    from agent_orchestrator.runs.loop.start import Started
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner

Function = Callable[..., Any]

RESUME_OPTIONS = (
    *("max_iterations", "timeout", "interactive", "auto_test", "test_command", "checkpoint_interval", "execution_mode"),
    *("allow_fewer_tests", "protect", "agent", "agent_command", "rehearse", "shared_tree"),
)


def loop_argument(function: Function) -> Function:
    """The LOOP argument, by position or as --loop-id."""
    function = click.option("--loop-id", "named", metavar="LOOP", help="The same as LOOP.")(function)
    return click.argument("loop", required=False, shell_complete=complete_runs)(function)


def pick_loop(orchestrator: Orchestrator, loop: str | None, named: str | None, *, or_last: bool = False) -> StoredRun:
    """The loop that is meant; left out, the one that is active, or, where it is only looked at, the last, said as such."""
    from agent_orchestrator.runs.loop.start import find_loop
    from agent_orchestrator.surfaces.cli.screen import warn

    if loop is not None and named is not None and loop != named:
        raise click.UsageError("LOOP and --loop-id name two loops; give one.")
    given = loop if loop is not None else named
    found = find_loop(orchestrator, given, or_last=or_last)
    if given is None and found.summary.ended:
        warn(f"no loop is active; the last one was {found.id}")
    return found


def limit_options(function: Function) -> Function:
    """Options that a loop is started with and may be given anew when it goes on."""
    options = (
        click.option("--max-iterations", metavar="N", help="Iterations at most (200)."),
        click.option("--timeout", metavar="MIN", help="Minutes for the whole loop, pauses left out."),
        click.option("--interactive/--no-interactive", default=None, help="Ask a person before giving up or accepting."),
        click.option("--auto-test/--no-auto-test", default=None, help="Run the tests before completing (on)."),
        click.option("--test-command", metavar="CMD", help="What runs the tests; without it, a detected one."),
        click.option("--checkpoint-interval", metavar="N", help="A checkpoint file every N iterations (1)."),
        click.option("--execution-mode", metavar="MODE", help="default, logged, seeded or strict."),
        budget_options,
        click.option("--allow-fewer-tests", is_flag=True, help="Let fewer tests, or changed protected files, complete."),
        click.option("--protect", multiple=True, metavar="PATH", help="Files that must stay as they are; repeatable."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def agent_options(function: Function) -> Function:
    """Who works."""
    options = (
        click.option("--agent", metavar="NAME[:MODEL]", help="The agent that works."),
        click.option("--agent-command", metavar="CMD", help="Any program as the agent: the prompt on its standard input."),
        click.option("--rehearse", metavar="SCRIPT", help="Play the agent from a YAML script, without a model."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def driving_options(function: Function) -> Function:
    """How a loop is shown and left."""
    options = (
        click.option("--no-wait", is_flag=True, help="Exit with 4 when only a person can move the loop."),
        click.option("--detach", is_flag=True, help="Run in the background."),
        click.option("--on-wait", metavar="CMD", help="A shell command started when the loop begins to wait for a person."),
        click.option("--on-end", metavar="CMD", help="A shell command started when the loop ends."),
        click.option("--quiet", is_flag=True, help="Only the loop id and the result."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def read_options(given: dict[str, Any]) -> LoopOptions:
    """The options as control takes them."""
    from agent_orchestrator.runs.loop.options import LoopOptions

    return LoopOptions(**{name: given[name] for name in LoopOptions.__struct_fields__ if name in given})


def read_manner(given: dict[str, Any]) -> Manner:
    """How to show and leave."""
    from agent_orchestrator.surfaces.cli.drive import Manner

    return Manner(**{name: given[name] for name in ("quiet", "as_json", "no_wait", "on_wait", "on_end")})


def drive_started(orchestrator: Orchestrator, started: Started, manner: Manner, *, detach: bool) -> int:
    """Drives a loop that was just made, here or behind."""
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.screen import warn

    for note in started.notes:
        warn(note)
    if detach:
        started.owner.release()
        return detach_loop(orchestrator, started.run, manner)
    announce(started.run, manner)
    return drive(orchestrator, started.run, started.owner, manner)


def detach_loop(orchestrator: Orchestrator, run: StoredRun, manner: Manner, more: Sequence[str] = ()) -> int:
    """Lets another process of ours go on with the loop."""
    from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments

    return detach(orchestrator, run, ["loop", *resume_arguments(run, manner), *more], manner)


def given_arguments(given: dict[str, Any]) -> list[str]:
    """The options for going on that were really given, as a command line."""
    arguments: list[str] = []
    for name in RESUME_OPTIONS:
        flag, value = f"--{name.replace('_', '-')}", given[name]
        if isinstance(value, tuple):
            arguments += [word for one in value for word in (flag, one)]
        elif isinstance(value, bool):
            arguments += [flag] if value else [f"--no-{flag[2:]}"] if name in ("interactive", "auto_test") else []
        elif value is not None:
            arguments += [flag, value]
    return [*arguments, *budget_arguments(given)]


def announce(run: StoredRun, manner: Manner) -> None:
    """The first line: whoever started us can find the loop again, whatever happens next."""
    from agent_orchestrator.surfaces.cli.progress import Writer

    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"loop {run.id}")
