"""`orc schedule add`: a command that queues a run, given by the clock."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc schedule add nightly "0 3 * * *" -- run --workflow nightly.yaml --agent-command my-agent
orc schedule add tidy "0 18 * * 5" --zone Europe/Berlin -- loop run "tidy up" --until make --agent-command my-agent
"""


@make_command("add", EXAMPLE)
@click.argument("name")
@click.argument("cron")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.option("--zone", metavar="ZONE", default="UTC", help="The time zone of the times, such as Europe/Berlin (UTC).")
@click.option("--branch", metavar="NAME", help="The branch of the remote that runs begin at (the remote's own).")
@click.option(
    "--overlap",
    type=click.Choice(["skip", "allow"]),
    default="skip",
    help="While a run of it has not ended: skip the due time, or allow another run beside it (skip).",
)
def command(
    repo: str | None, as_json: bool, name: str, cron: str, words: tuple[str, ...], zone: str, branch: str | None, overlap: str
) -> int:
    """Queue a run again and again, by the clock.

    CRON is minute, hour, day, month and weekday. COMMAND is one that takes --queue, with its options, without `orc`: a worker of
    its pool gives it, in a fresh clone, at the head of the branch as it is then. The run's id is NAME and the due time. Of due
    times that passed while there was no worker, the latest gets its run; one that comes while a run of NAME has not ended gets
    none, unless --overlap allow.
    """
    from agent_orchestrator.runs.stores import require_shared
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        address = require_shared(orchestrator)
        from agent_orchestrator.errors import Refused
        from agent_orchestrator.store.postgres.cluster import Cluster
        from agent_orchestrator.surfaces.cli.schedule.shared import make_schedule, schedule_facts, schedule_lines

        schedule = make_schedule(orchestrator, address, name, (cron, zone), words, branch or "", overlap)
        cluster = Cluster(address.url)
        try:
            if not cluster.schedules.add(schedule):
                raise Refused(why=f"{address.repository} has a schedule {name}; remove it first: orc schedule remove {name}")
        finally:
            cluster.close()
        if as_json:
            print_json(schedule_facts(schedule))
            return 0
        screen = Screen(orchestrator.settings.environ)
        for line in schedule_lines(schedule):
            screen.line(line)
    return 0
