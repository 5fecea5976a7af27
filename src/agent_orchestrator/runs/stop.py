"""Directives that are carried out whoever drives the run: by that process, else by this one, just for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.inputs import Abort, Pause, Posted, Resume
from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.runs.directives import Sent, new_id, send_and_wait, send_stop
from agent_orchestrator.runs.follow import Follower, pause
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


def end_run(orchestrator: Orchestrator, run: StoredRun, reason: str) -> None:
    """Abort the run; return when it has ended and nobody drives it any more."""
    follower = Follower(orchestrator, run)
    abort_run(orchestrator, run, reason)
    while orchestrator.owner(run) is not None:
        pause()
    follower.read()
    if not follower.is_over():
        raise Refused(why=f"Run {run.id} could not be ended; see `orc show {run.id}`.")


def direct(orchestrator: Orchestrator, run: StoredRun, directive: Posted, over: Callable[[Any], bool] | None = None) -> Sent:
    """Give a directive to whoever drives the run; when nobody does, to this process, just for that.

    With `over`, which looks at the state, a run that would go on is paused first: nothing else is started for it here, and
    its agents live on when it is left.
    """
    if orchestrator.owner(run) is not None:
        return send_and_wait(orchestrator, run, directive)
    if run.context.remote:  # A worker takes it up for that: here are neither its tree nor its agents.
        send_stop(orchestrator, run, directive)
        return Sent(directive=directive.id, taken=False, owner=None)
    try:
        owner = orchestrator.own(run.id)
    except RunBusy:  # Somebody has just begun to drive it.
        return send_and_wait(orchestrator, run, directive)
    try:
        send_stop(orchestrator, run, directive)
        if over is None:
            orchestrator.settle(run)
        else:
            running = orchestrator.fold(run).state.lifecycle.running
            pauses = (Pause(id=new_id(), reason="not running"),) if running else ()
            orchestrator.drive_owned(run, _Until(over), lambda driver: False, pauses)
    finally:
        owner.release()
    return Sent(directive=directive.id, taken=True, owner=None)


def pause_run(orchestrator: Orchestrator, run: StoredRun, reason: str, *, now: bool, directive_id: str = "") -> Sent:
    """Pause a run; one that nobody drives, nor a worker will, starts nothing anyway, so that only `now` has something to stop."""
    directive = Pause(id=directive_id or new_id(), now=now, reason=reason)
    if orchestrator.owner(run) is None and not now and not run.summary.ended and not run.context.remote:
        return Sent(directive=directive.id, taken=False, owner=None)
    return direct(orchestrator, run, directive)


def unpause_run(orchestrator: Orchestrator, run: StoredRun) -> Sent:
    """Tell whoever drives a run that drains to go on; raise Refused where nobody does."""
    if orchestrator.owner(run) is None:
        raise Refused(why=f"Nothing is running run {run.id}; the next `orc resume` continues it.")
    return send_and_wait(orchestrator, run, Resume(id=new_id()))


def abort_run(orchestrator: Orchestrator, run: StoredRun, reason: str, directive_id: str = "") -> Sent:
    """Abort a run, whoever drives it."""
    return direct(orchestrator, run, Abort(id=directive_id or new_id(), reason=reason))


class _Until:
    """Leaves a run as soon as its state is as wanted."""

    def __init__(self, over: Callable[[Any], bool]) -> None:
        self._over = over

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Look at the state after each durable moment."""
        if self._over(driver.state):
            driver.leave()

    def noticed(self, driver: Driver, text: str) -> None:
        """Ignore it."""
