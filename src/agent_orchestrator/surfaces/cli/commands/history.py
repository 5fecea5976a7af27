"""`orc history`: the journal in words."""

from __future__ import annotations

import sys

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

EXAMPLE = """
orc history f8c1
orc history f8c1 --json | jq -r .event.event
"""


@make_command("history", EXAMPLE)
@run_argument(required=True)
def command(run: str, repo: str | None, as_json: bool) -> int:
    """Print a run's journal in words.

    Every fact, oldest first. With --json, one object per line: seq, at, event, words.
    """
    import msgspec

    from agent_orchestrator.core.units import iso
    from agent_orchestrator.engine.journal import decode_events
    from agent_orchestrator.surfaces.cli.phrases import date_time, say_event
    from agent_orchestrator.surfaces.cli.screen import Screen, plain
    from agent_orchestrator.systems import find_system

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        system = find_system(found.system)
        screen = Screen(orchestrator.settings.environ)
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
