"""`orc abort`: stops a run for good."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

EXAMPLE = """
orc abort f8c1 --reason 'wrong branch'
"""


@make_command("abort", EXAMPLE)
@run_argument()
@click.option("--reason", metavar="TEXT", default="aborted by a person", show_default=True, help="Kept in the journal.")
def command(run: str | None, repo: str | None, as_json: bool, reason: str) -> int:
    """Stop a run for good.

    Running agents are stopped, even if orc is not running; only --start-at-step can start it again.
    """
    from agent_orchestrator.core.inputs import Abort
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent, stop_here

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        directive = Abort(id=new_id(), reason=reason)
        if orchestrator.owner(found) is None:
            return stop_here(orchestrator, found, directive, as_json=as_json)
        sent = send_and_wait(orchestrator, found, directive)
        text = f"Run {found.id} is being aborted; watch it end with: orc watch {found.id}"
        if not sent.taken:
            text = f"Run {found.id} was asked to abort; {sent.owner} has not answered yet."
        return report_sent(orchestrator, found, sent, text, as_json=as_json)
