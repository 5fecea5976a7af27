"""A run followed from outside: the journal's new rows are read and the state kept folded, without an event loop."""

from __future__ import annotations

import select
from typing import Any

from agent_orchestrator.core.events import Event
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun

POLL_S = 0.2


class Follower:
    """A run as another process moves it on."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        self._orchestrator, self.run = orchestrator, run
        self.folded = orchestrator.fold(run)

    @property
    def state(self) -> Any:
        """The state as of the last row read."""
        return self.folded.state

    @property
    def system(self) -> Any:
        """The run's system."""
        return self.folded.system

    def is_over(self) -> bool:
        """Tell whether the run is over."""
        return bool(self.folded.state.lifecycle.ended)

    def read(self) -> list[tuple[int, list[Event]]]:
        """Return what happened since the last call: time and events of each row."""
        found = []
        for seq, at_us, body in self._orchestrator.store.rows(self.run.id, self.folded.seq):
            events = decode_events(self.folded.system, body)
            self.folded.add(seq, at_us, events)
            found.append((at_us, events))
        return found


def pause(seconds: float = POLL_S) -> None:
    """Wait a moment; Ctrl-C ends it."""
    select.select([], [], [], seconds)
