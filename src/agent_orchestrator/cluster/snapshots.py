"""Pushes the trees of agents at work now and then: of an agent that is lost with its host something is left to people."""

from __future__ import annotations

import threading
from pathlib import Path

from agent_orchestrator.cluster.homes import OpenHome
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.engine.process.ends import list_living
from agent_orchestrator.errors import Fenced, OrcError
from agent_orchestrator.git.agent_trees import keep_working

SNAPSHOT_S = 300.0
"""Between two looks at the trees of agents at work."""


class TreeSnapshots(threading.Thread):
    """The thread that keeps the working trees of one run."""

    def __init__(self, home: OpenHome, launches: Path, every_s: float) -> None:
        super().__init__(name=f"trees of {home.run}", daemon=True)
        self._home, self._launches, self._every_s = home, launches, every_s
        self._closed = threading.Event()

    def run(self) -> None:
        """Look while agents are at work, until the run is somebody else's; what cannot be pushed now is pushed the next time."""
        while not self._closed.wait(self._every_s):
            try:
                if list_living([self._launches]):
                    self.keep()
            except Fenced:
                return
            except (OrcError, OSError):
                continue

    def keep(self) -> None:
        """Keep the trees as they are, and push them; raises Fenced and Shortage."""
        scratch = self._launches / ".working"
        keep_working(self._home.folder, self._home.run, scratch, SystemClock().now_us())
        self._home.push_working()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        self.join()
