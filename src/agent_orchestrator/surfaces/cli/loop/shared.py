"""Options and arguments of the loop commands, and which loop they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.options import complete_runs, compose

if TYPE_CHECKING:
    from agent_orchestrator.runs.loop.files import LoopFile
    from agent_orchestrator.runs.orchestrator import Orchestrator

Function = Callable[..., Any]


def loop_argument(function: Function) -> Function:
    """The LOOP argument, by position or as --loop-id."""
    function = click.option("--loop-id", "named", metavar="LOOP", help="The same as LOOP.")(function)
    return click.argument("loop", required=False, shell_complete=complete_runs)(function)


def pick_loop(orchestrator: Orchestrator, loop: str | None, named: str | None) -> StoredRun:
    """Return the loop to direct; left out, the one that is active. One that is only in a file is taken over, and said so."""
    from agent_orchestrator.runs.loop.files import LoopFile, import_file, say_file
    from agent_orchestrator.runs.loop.start import search_loop
    from agent_orchestrator.surfaces.cli.screen import warn

    given = _given(loop, named)
    found = search_loop(orchestrator, given)
    if not isinstance(found, LoopFile):
        return found
    warn(f"loop {found.taken.name} is taken over from {say_file(orchestrator, found)}")
    for line in (*found.taken.notes, *(f"{field}: left out" for field in found.taken.left)):
        warn(f"  {line}")
    return import_file(orchestrator, found)


def look_for_loop(
    orchestrator: Orchestrator, loop: str | None, named: str | None, *, or_last: bool = True
) -> StoredRun | LoopFile:
    """Return the loop to look at; left out, the one that is active or the last, said as such. Nothing is changed."""
    from agent_orchestrator.runs.loop.start import search_loop
    from agent_orchestrator.surfaces.cli.screen import warn

    given = _given(loop, named)
    found = search_loop(orchestrator, given, or_last=or_last)
    name, ended = (found.id, found.summary.ended) if isinstance(found, StoredRun) else (found.taken.name, found.ended)
    if given is None and ended:
        warn(f"no loop is active; the last one was {name}")
    return found


def pick_run(orchestrator: Orchestrator, loop: str | None, named: str | None, *, or_last: bool = True) -> StoredRun:
    """Return the loop to look at, which has run here; one that is only in a file is refused."""
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.runs.loop.files import say_file

    found = look_for_loop(orchestrator, loop, named, or_last=or_last)
    if isinstance(found, StoredRun):
        return found
    name, file = found.taken.name, say_file(orchestrator, found)
    raise Refused(why=f"Loop {name} has not run here, it is only in {file}; `orc import {file}` takes it over.")


def _given(loop: str | None, named: str | None) -> str | None:
    if loop is not None and named is not None and loop != named:
        raise click.UsageError("LOOP and --loop-id name two loops; give one.")
    return loop if loop is not None else named


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
