"""`orc history`: the journal in words."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc history f8c1
orc history f8c1 --points
orc history f8c1 --json | jq -r .event.event
"""


@make_command("history", EXAMPLE)
@run_argument()
@click.option("--points", is_flag=True, help="Only the points that `orc rewind` and `orc fork` can go to.")
def command(run: str | None, points: bool, repo: str | None, as_json: bool) -> int:
    """Print a run's journal in words.

    Every fact, oldest first. With --json, one object per line: seq, at, event, words. A point is named by what was done
    then; the number of any row, seq, is one, too.
    """
    import msgspec

    from agent_orchestrator.core.units import iso
    from agent_orchestrator.engine.journal import decode_events
    from agent_orchestrator.surfaces.cli.phrases import date_time, say_event
    from agent_orchestrator.surfaces.cli.screen import Screen, plain
    from agent_orchestrator.systems import find_system

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run, or_newest=True)
        system = find_system(found.system)
        screen = Screen(orchestrator.settings.environ)
        if points:
            return _print_points(orchestrator, found, screen, as_json=as_json)
        for seq, at_us, body in orchestrator.store.rows(found.id):
            for event in decode_events(system, body):
                told = say_event(found.system, event)
                if as_json:
                    line = {"seq": seq, "at": iso(at_us), "unit": told.unit or None, "words": told.words, "event": event}
                    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
                else:
                    words = plain(told.words)
                    screen.line(f"{date_time(at_us)}  {screen.paint((told.unit or 'run').ljust(8), 'bold')}  {words}")
    return 0


def _print_points(orchestrator: Orchestrator, run: StoredRun, screen: Screen, *, as_json: bool) -> int:
    import msgspec

    from agent_orchestrator.core.units import iso
    from agent_orchestrator.runs.points import list_points
    from agent_orchestrator.surfaces.cli.phrases import date_time

    found = list_points(orchestrator, run)
    width = max((len(point.name) for point in found), default=0)
    for point in found:
        if as_json:
            line = {"point": point.name, "seq": point.seq, "at": iso(point.at_us)}
            sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        else:
            screen.line(f"{date_time(point.at_us)}  {screen.paint(point.name.ljust(width), 'bold')}  row {point.seq}")
    return 0
