"""`orc loop abort`: stops a loop for good, and brings the tree back when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_loop
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

EXAMPLE = """
orc loop abort
orc loop abort ralph-fix-tests-a1b2c3d4 --revert
"""


@make_command("abort", EXAMPLE)
@loop_argument
@click.option("--revert", is_flag=True, help="Bring the tree back to the start; what is there is kept under a ref first.")
@click.option("--reason", metavar="TEXT", default="aborted by a person", show_default=True, help="Kept in the journal.")
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool, revert: bool, reason: str) -> int:
    """Stop a loop for good.

    The agent is stopped, even if orc is not running the loop. With --revert, an aborted loop may be reverted later too.
    """
    from agent_orchestrator.core.inputs import Abort
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent, stop_here

    with open_orchestrator(repo) as orchestrator:
        run = pick_loop(orchestrator, loop, named)
        if revert and run.summary.status == "aborted":
            return _revert(orchestrator, run, as_json=as_json)
        directive = Abort(id=new_id(), reason=reason)
        if orchestrator.owner(run) is None:
            stop_here(orchestrator, run, directive, as_json=as_json and not revert)
        else:
            sent = send_and_wait(orchestrator, run, directive)
            if not revert:
                text = f"Loop {run.id} is being aborted."
                return report_sent(orchestrator, run, sent, text, as_json=as_json)
            _wait_until_ended(orchestrator, run)
        return _revert(orchestrator, run, as_json=as_json) if revert else 0


def _wait_until_ended(orchestrator: Orchestrator, run: StoredRun) -> None:
    from agent_orchestrator.runs.follow import Follower, pause

    follower = Follower(orchestrator, run)
    while not follower.is_over():
        pause()
        follower.read()


def _revert(orchestrator: Orchestrator, run: StoredRun, *, as_json: bool) -> int:
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.loop.start import revert
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    ref = revert(orchestrator, run)
    if as_json:
        print_json({**run_facts(orchestrator.find(run.id)), "reverted": True, "kept": ref})
    else:
        screen = Screen(orchestrator.settings.environ)
        screen.line(f"The tree is as loop {run.id} found it; what was there is kept as {ref} (git show {ref}).")
    return 0
