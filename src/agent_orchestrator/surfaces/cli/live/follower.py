"""The live view of a run that another process drives: the journal's new rows are read, and the launches' files."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from agent_orchestrator.core.inputs import Answer, Instruct
from agent_orchestrator.runs.directives import refuse_second_answer, send_and_wait
from agent_orchestrator.runs.follow import POLL_S, Follower
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.cli.live.view import LiveView
from agent_orchestrator.surfaces.cli.progress import event_lines
from agent_orchestrator.surfaces.cli.screen import Screen, warn
from agent_orchestrator.systems import about


def follow_live(orchestrator: Orchestrator, follower: Follower, screen: Screen) -> None:
    """Show a run until it is over, or the person leaves; what it asks can be answered here."""
    run = follower.run

    def send(said: Answer | Instruct) -> str:
        unit = said.unit if isinstance(said, Answer) else said.values.get("unit")
        refuse_second_answer(orchestrator, run, unit)
        driven = send_and_wait(orchestrator, run, said).owner is not None
        if run.context.remote and not driven:
            return "a worker goes on with it"
        return "" if driven else f"nothing is running it now: {about(run.system).resume} {run.id}"

    view = LiveView(orchestrator, run, screen, send)
    with _given_back(view):
        away = False
        while True:
            for at_us, events in follower.read():
                view.tell(event_lines(run.system, events, at_us, screen))
            if follower.is_over() or view.left:
                break
            if follower.away is not None and not away:
                view.tell([f"{follower.away} Watching goes on when it is back."])
            away = follower.away is not None
            view.look(follower.folded, driven=follower.is_driven())
            view.take_keys(POLL_S)
    if view.left:
        warn(f"run {run.id} is still waiting; `orc watch {run.id}` asks again, `orc approve` and `orc reject` answer.")


@contextlib.contextmanager
def _given_back(view: LiveView) -> Iterator[None]:
    """Give the terminal back however this ends; a signal that ends the process still does."""

    def end(number: int, _: object) -> None:
        view.close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        view.close()
        for number, handler in before.items():
            signal.signal(number, handler)
