"""The commands that direct a run: a person's judgement, a stop, and the line that says what was sent."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.inputs import Abort, Answer, Directive
from agent_orchestrator.errors import DiskFull, Unavailable
from agent_orchestrator.runs.directives import Sent, send_judgement, send_stop
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.screen import Screen, print_json


def report_sent(orchestrator: Orchestrator, run: StoredRun, sent: Sent, text: str, *, as_json: bool) -> int:
    """Say that it was sent; returns the exit code."""
    if as_json:
        fresh = orchestrator.store.run(run.id) or run
        more: dict[str, Any] = {"directive": sent.directive, "taken": sent.taken, "message": text}
        print_json({**run_facts(fresh, orchestrator.owner(run)), **more})
    else:
        Screen(orchestrator.settings.environ).line(text)
    return 0


def stop_here(orchestrator: Orchestrator, run: StoredRun, directive: Directive, *, as_json: bool) -> int:
    """Take up a run that nobody drives, just long enough for the directive to be carried out."""
    from agent_orchestrator.engine.process.identity import signal_launches
    from agent_orchestrator.surfaces.cli.drive import Manner, drive

    try:
        send_stop(orchestrator, run, directive)
    except DiskFull:
        orchestrator.refuse_kept(run)
        if (who := orchestrator.stamp(directive).who) is None or who.launch is not None:
            raise
        stopped = signal_launches(orchestrator.settings.folder / "launches" / run.id)
        again = "orc abort" if isinstance(directive, Abort) else "orc pause --now"
        detail = f"The disk is full: {stopped} processes of run {run.id} were told to end, but that could not be journaled; "
        raise Unavailable(detail=f"{detail}free some space, then `{again} {run.id}` once more.") from None
    if run.context.remote:
        text = f"Run {run.id} was told; the next worker that takes it up does so. Watch it with: orc watch {run.id}"
        return report_sent(orchestrator, run, Sent(directive=directive.id, taken=False, owner=None), text, as_json=as_json)
    drive(orchestrator, run, orchestrator.own(run.id), Manner(as_json=as_json, rest=True))
    return 0


def answer(orchestrator: Orchestrator, run: StoredRun, said: Answer, *, as_json: bool) -> int:
    """Send a person's judgement; one that names no question is for the one that is asked now."""
    sent = send_judgement(orchestrator, run, said)
    text = f"{'Approved' if said.approved else 'Rejected'} in run {run.id}"
    if sent.owner is None:
        way = "a worker goes on with it." if run.context.remote else f"continue with: orc resume {run.id}"
        text += f": recorded. Nothing is running it now; {way}"
    else:
        text += "." if sent.taken else f": recorded; {sent.owner} has not taken it yet."
    return report_sent(orchestrator, run, sent, text, as_json=as_json)
