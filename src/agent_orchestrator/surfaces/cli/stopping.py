"""Ends a run and waits until it has ended, whoever drives it."""

from __future__ import annotations

from agent_orchestrator.api.orchestrator import Orchestrator
from agent_orchestrator.core.inputs import Abort, Directive
from agent_orchestrator.engine.engine import Silent
from agent_orchestrator.errors import Refused
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.directing import new_id, say, send_and_wait
from agent_orchestrator.surfaces.cli.follow import Follower, pause


def end_run(orchestrator: Orchestrator, run: StoredRun, reason: str) -> None:
    """Aborts the run; returns when it has ended and nobody drives it any more."""
    follower = Follower(orchestrator, run)
    direct(orchestrator, run, Abort(id=new_id(), reason=reason))
    while orchestrator.owner(run) is not None:
        pause()
    follower.read()
    if not follower.is_over():
        raise Refused(why=f"Run {run.id} could not be ended; see `orc show {run.id}`.")


def direct(orchestrator: Orchestrator, run: StoredRun, directive: Directive) -> bool:
    """Gives a directive to whoever drives the run; when nobody does, to this process, just for that. True if it was the other."""
    if orchestrator.owner(run) is not None:
        send_and_wait(orchestrator, run, directive)
        return True
    owner = orchestrator.own(run.id)
    try:
        say(orchestrator, run, directive)
        orchestrator.drive(run, Silent(), lambda driver: False)
    finally:
        owner.release()
    return False
