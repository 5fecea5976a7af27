"""`orc worker`: takes runs from a queue and drives them."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc worker --store postgresql://db.example.org/orc
orc worker --pool gpu --capacity 4
orc worker --once f8c1
"""


@make_command("worker", EXAMPLE)
@click.option("--pool", metavar="NAME", help="The queue that it takes runs from (default).")
@click.option("--capacity", metavar="N", help="Runs that it drives at once (1).")
@click.option("--once", metavar="RUN", help="Drive this run until it rests, then leave with its exit code.")
@click.option("--name", metavar="NAME", help="What it is called in `orc workers`; the host's name without it.")
@click.option("--root", metavar="DIR", help="Where runs have their repositories: the same on every host (/var/tmp/orc).")
@click.option("--lease", metavar="TIME", help="For how long it may be silent before others take its runs over (15s).")
@click.option("--snapshots", metavar="TIME", help="How often the trees of agents at work are pushed, for people (5m).")
def command(repo: str | None, as_json: bool, **given: str | None) -> int:
    """Take runs from a queue and drive them.

    Each run is cloned from its remote into a home of its own, driven there, and its branch pushed back as orc/RUN. SIGTERM, or
    Ctrl-C, once: it takes nothing new and leaves when what it drives has ended or rests. Twice: it ends the agents and gives the
    runs back to the queue. Killed and started again on the same host before its lease is over, it goes on with its agents.
    """
    from agent_orchestrator.runs.stores import require_shared

    with open_orchestrator(repo) as orchestrator:
        require_shared(orchestrator)
        from agent_orchestrator.surfaces.cli.worker import serve_queue

        return serve_queue(orchestrator, given)
