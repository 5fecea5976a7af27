"""`orc store check`: whether the store is there, and whole."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc store check
orc store check --store postgresql://orc@db.example.com/orc
"""


@make_command("check", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Check the store that runs are kept in.

    Where it is, its schema, how many runs of this repository it has, and whether their journals are whole. Exits with 3 when
    something is wrong. It reads everything once: slow on a large store. A snapshot that is not what its run's journal says is
    removed: the journal alone counts.
    """
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.runs.exits import COMPLETED, ENVIRONMENT
    from agent_orchestrator.runs.snapshots import drop_wrong_snapshots
    from agent_orchestrator.surfaces.cli.screen import print_json

    with open_orchestrator(repo) as orchestrator:
        address = orchestrator.address
        where = str(address or orchestrator.settings.folder / "orc.db")
        name = address.repository if address is not None else str(orchestrator.settings.home)
        if not orchestrator.has_store:
            if as_json:
                nothing: dict[str, object] = {
                    "kind": None,
                    "schema": None,
                    "runs": 0,
                    "unfinished": 0,
                    "faults": [],
                    "dropped": [],
                }
                print_json({"store": where, "repository": name, **nothing})
            else:
                click.echo(f"{where} does not exist yet; the first run makes it.")
            return COMPLETED
        store, count = orchestrator.store, orchestrator.count()
        version, faults = store.health()
        dropped = drop_wrong_snapshots(orchestrator) if not faults else []
        if as_json:
            counts = {"runs": count.total, "unfinished": count.unfinished}
            print_json(
                {
                    "store": where,
                    "repository": name,
                    "kind": store.kind,
                    "schema": version,
                    **counts,
                    "faults": faults,
                    "dropped": dropped,
                }
            )
        else:
            runs = f"{say_count(count.total, 'run')} of {name}, {count.unfinished} unfinished"
            click.echo(f"{where}: {store.kind}, schema {version}, {runs}, {'intact' if not faults else 'damaged'}.")
            for line in (*faults, *dropped):
                click.echo(f"  {line}")
        return ENVIRONMENT if faults else COMPLETED
