"""`orc watch`: follows a run that another process drives."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc watch
orc watch f8c1 && echo done
"""


@make_command("watch", EXAMPLE)
@run_argument()
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Follow a run until it ends.

    Works from any process; exits with the code of the run. Ctrl-C stops watching, not the run.
    """
    with open_orchestrator(repo) as orchestrator:
        return watch(orchestrator, pick(orchestrator, run), as_json=as_json)


def watch(orchestrator: Orchestrator, found: StoredRun, *, as_json: bool, units: bool = True) -> int:
    """Show a run, its `units` too, as another process moves it on; returns its exit code."""
    from agent_orchestrator.runs.exits import exit_code
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.surfaces.cli.overview import print_header, print_run
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    screen = Screen(orchestrator.settings.environ, sys.stderr if as_json else sys.stdout)
    follower = Follower(orchestrator, found)
    (print_run if units else print_header)(orchestrator, screen, found, follower.folded)
    if screen.drawable and not follower.is_over():
        from agent_orchestrator.surfaces.cli.live.follower import follow_live

        follow_live(orchestrator, follower, screen)
    else:
        _follow(follower, screen)
    summary = follower.folded.summary()
    code = exit_code(summary)
    if as_json:
        from agent_orchestrator.surfaces.cli.drive import result_facts

        print_json(result_facts(orchestrator, found, summary, code))
    return code


def _follow(follower: Follower, screen: Screen) -> None:
    """Tell what happens until the run is over."""
    from agent_orchestrator.runs.follow import pause
    from agent_orchestrator.surfaces.cli.progress import event_lines
    from agent_orchestrator.surfaces.cli.screen import warn

    driven, away = True, False
    while not follower.is_over():
        for at_us, events in follower.read():
            for line in event_lines(follower.run.system, events, at_us, screen):
                screen.line(line)
        if follower.is_over():
            break
        if follower.away is not None and not away:
            warn(f"{follower.away} Watching goes on when it is back.")
        away = follower.away is not None
        now = follower.is_driven()
        if driven and not now:
            then = "a worker takes it" if follower.run.context.remote else f"`orc resume {follower.run.id}` continues it"
            warn(f"nothing is running {follower.run.id}; watching until {then}.")
        driven = now
        pause()
