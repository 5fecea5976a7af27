"""`orc attach`: takes the session of a unit's agent over in the client's own screen, and hands it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_steps, open_orchestrator, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.directives import Sent
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

EXAMPLE = """
orc attach f8c1 coding
orc attach f8c1 coding --hand-back
orc attach f8c1 coding --done
"""

BACK, KEEP, DONE = "y", "n", "d"


@make_command("attach", EXAMPLE)
@run_argument(required=True)
@click.argument("unit", shell_complete=complete_steps)
@click.option("--hand-back", is_flag=True, help="Start no client: let the agent of a unit that was taken over continue.")
@click.option("--done", is_flag=True, help="The same, and tell the agent that the work is done: it only reports.")
def command(run: str, unit: str, repo: str | None, as_json: bool, hand_back: bool, done: bool) -> int:
    """Take over an agent's session at your terminal.

    The agent of the unit (a step, task, bead or group) is stopped, and its own client opens on the same session: claude, codex,
    gemini or opencode. The other units go on. When you leave the client, hand the session back, and the agent continues in
    it, in the same attempt; say that the work is done, and it only reports; or keep it: then the unit stays held until you
    attach again or hand it back.
    """
    import sys

    from agent_orchestrator.errors import UsageError

    starts = not hand_back and not done
    if starts and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(detail="orc attach opens the agent's client in a terminal, and there is none; `orc steer` needs none.")
    with open_orchestrator(repo) as orchestrator:
        found = orchestrator.find(run)
        return _attach(orchestrator, found, unit, as_json) if starts else _hand_back(orchestrator, found, unit, as_json, done)


def _attach(orchestrator: Orchestrator, run: StoredRun, unit: str, as_json: bool) -> int:
    from agent_orchestrator.runs import takeover
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    with takeover.reserve(orchestrator, run, unit) as lock:
        session = takeover.take_over(orchestrator, run, unit)
        order = takeover.plan_client(orchestrator, run, session)
        code = takeover.run_client(orchestrator, run, order, lock)
        if code:
            warn(f"{session.effect.agent.name} ended with exit code {code}")
        fresh = orchestrator.fold(run).state.lifecycle
        if not fresh.ended and (answer := _ask(unit)) != KEEP:
            sent = takeover.hand_back(orchestrator, run, unit, done=answer == DONE)
            return _report(orchestrator, run, unit, sent, as_json)
    text = f"Run {run.id}: {unit} stays with you: orc attach {run.id} {unit} continues it, with --hand-back its agent does."
    text = f"Run {run.id} is {fresh.status}." if fresh.ended else text
    if as_json:
        print_json({"run_id": run.id, "unit": unit, "handed_back": False, "message": text})
    else:
        Screen(orchestrator.settings.environ).line(text)
    return 0


def _report(orchestrator: Orchestrator, run: StoredRun, unit: str, sent: Sent, as_json: bool) -> int:
    from agent_orchestrator.surfaces.cli.direct import report_sent

    text = f"Run {run.id}: {unit} is handed back; its agent continues in the same session."
    if sent.owner is None:
        text = f"Run {run.id}: {unit} is handed back. Nothing is running it now; continue with: orc resume {run.id}"
    return report_sent(orchestrator, run, sent, text, as_json=as_json)


def _ask(unit: str) -> str:
    """Ask the person whether to hand the unit back; one who does not answer keeps it."""
    click.echo("d: the work is done, and the agent only reports", err=True)
    while True:
        try:
            given = click.prompt(f"Hand {unit} back to its agent? [Y/n/d]", default=BACK, show_default=False, err=True)
        except click.Abort:
            click.echo(err=True)
            return KEEP
        if (answer := given.strip().lower()[:1]) in (BACK, KEEP, DONE):
            return answer


def _hand_back(orchestrator: Orchestrator, run: StoredRun, unit: str, as_json: bool, done: bool) -> int:
    from agent_orchestrator.runs import takeover

    with takeover.reserve(orchestrator, run, unit):
        return _report(orchestrator, run, unit, takeover.hand_back(orchestrator, run, unit, done=done), as_json)
