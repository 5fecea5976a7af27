"""`orc store copy`: all runs, in another store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.runs.store_copy import CopiedRun

EXAMPLE = """
orc store copy postgresql://orc@db.example.com/orc
orc store copy sqlite --store postgresql://orc@db.example.com/orc
"""


@make_command("copy", EXAMPLE)
@click.argument("target", metavar="URL")
def command(target: str, repo: str | None, as_json: bool) -> int:
    """Copy all runs to another store.

    From the store that is configured, or --store, to URL: postgresql://HOST/DATABASE, or sqlite for the repository's own file.
    Nothing may be at work meanwhile. Each copy is checked by folding both journals. A run that has not ended goes on in the new
    place only: the old one keeps its journal under another id. Repeat it if it was cut off.
    """
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.runs.store_copy import copy_store, open_target
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as source, open_target(source, target) as copy:
        screen = Screen(source.settings.environ)
        done: list[CopiedRun] = []
        for one in copy_store(source, copy):
            done.append(one)
            if not as_json:
                screen.line(_say(one))
        where = str(copy.address or copy.settings.folder / "orc.db")
        if as_json:
            print_json({"target": where, "runs": done})
            return 0
        screen.line(f"{say_count(len(done), 'run')} copied to {where} and checked.")
        if copy.address is not None:
            screen.line("Say it once and for all: url of [store] in the configuration, or ORC_STORE.")
    return 0


def _say(one: CopiedRun) -> str:
    text = f"run {one.run}: {one.rows} rows" + (", was there already" if one.was_there else "")
    return text + (f"; kept here as {one.kept_as}, to read" if one.kept_as is not None else "")
