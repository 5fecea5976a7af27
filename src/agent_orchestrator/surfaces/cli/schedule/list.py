"""`orc schedule list`: what is queued by the clock, and when."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc schedule list
orc schedule list --json
"""


@make_command("list", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """List the schedules of a repository, and when each is due.

    Times are in the schedule's own zone; with --json in UTC.
    """
    from agent_orchestrator.runs.stores import require_shared
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        address = require_shared(orchestrator)
        from agent_orchestrator.store.postgres.cluster import Cluster
        from agent_orchestrator.surfaces.cli.schedule.shared import schedule_facts, schedule_lines

        cluster = Cluster(address.url)
        try:
            found = cluster.schedules.list(address.repository)
        finally:
            cluster.close()
        if as_json:
            print_json({"schedules": [schedule_facts(one) for one in found]})
            return 0
        screen = Screen(orchestrator.settings.environ)
        for line in [line for one in found for line in schedule_lines(one)]:
            screen.line(line)
        if not found:
            screen.line(f"{address.repository} has no schedules; `orc schedule add` makes one.")
    return 0
