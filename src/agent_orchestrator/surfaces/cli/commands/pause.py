"""`orc pause`: lets a run drain, or stops what runs."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

EXAMPLE = """
orc pause f8c1
orc pause f8c1 --now
"""


@make_command("pause", EXAMPLE)
@run_argument()
@click.option("--now", is_flag=True, help="Also stop running agents; `orc resume` continues their attempts.")
@click.option("--reason", metavar="TEXT", default="asked to pause", show_default=True, help="Kept in the journal.")
def command(run: str | None, repo: str | None, as_json: bool, now: bool, reason: str) -> int:
    """Pause a run: nothing new starts.

    Running agents may finish, then orc leaves the run; `orc resume` continues it.
    """
    from agent_orchestrator.core.inputs import Pause
    from agent_orchestrator.runs.directives import Sent, new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent, stop_here

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        directive = Pause(id=new_id(), now=now, reason=reason)
        if orchestrator.owner(found) is None:
            if now or found.summary.ended:
                return stop_here(orchestrator, found, directive, as_json=as_json)
            text = f"Run {found.id} is not running; continue with: orc resume {found.id}. --now also stops living agents."
            nothing = Sent(directive=directive.id, taken=False, owner=None)
            return report_sent(orchestrator, found, nothing, text, as_json=as_json)
        sent = send_and_wait(orchestrator, found, directive)
        doing = "what runs is being stopped" if now else "what runs may finish"
        text = f"Run {found.id} is paused, {doing}. Continue with: orc resume {found.id}"
        if not sent.taken:
            text = f"Run {found.id} was asked to pause; {sent.owner} has not answered yet."
        return report_sent(orchestrator, found, sent, text, as_json=as_json)
