"""The live view of a run that this process drives: the engine tells what happened, its loop says when to look again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_orchestrator.core.events import DirectiveRefused, Event
from agent_orchestrator.core.inputs import Answer, Instruct
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.live.view import LiveView
from agent_orchestrator.surfaces.cli.progress import Lines, event_lines
from agent_orchestrator.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

REFRESH_S = 0.5
KEYS_S = 0.05
"""The time between two looks at the keyboard while something is asked."""


class LiveWatcher(Lines):
    """The observer of a run that is driven at a terminal."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun, screen: Screen) -> None:
        super().__init__(screen)
        self._orchestrator = orchestrator
        self._view = LiveView(orchestrator, run, screen, self._send)
        self._driver: Driver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked_s = 0.0

    def tell(self, line: str) -> None:
        """One line above the view."""
        self._view.tell([line])

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Tells the events; the view follows within half a second, and says itself what is asked."""
        self._view.tell(event_lines(driver.run.system, events, at_us, self.screen))
        for event in events:
            if isinstance(event, DirectiveRefused):
                self._view.refuse(event.directive, event.why)
        self._driver = driver
        if self._timer is None:
            self._tick()
        else:
            self._look_soon()

    def has_left(self) -> bool:
        """Say whether the person left."""
        return self._view.left

    def finish(self) -> None:
        """Takes the view away and gives the terminal back; what was told stays."""
        if self._timer is not None:
            self._timer.cancel()
        self._view.close()

    def _look_soon(self) -> None:
        """A question appears, and disappears, at once."""
        self._looked_s = 0.0

    def _tick(self) -> None:
        driver = self._driver
        assert driver is not None, "it is begun when something has happened"
        loop = driver.engine.loop
        if self._view.take_keys() or loop.time() - self._looked_s >= REFRESH_S:
            self._view.look(driver.folded)
            self._looked_s = loop.time()
            if self._view.left:
                driver.look_again()
        self._timer = loop.call_later(KEYS_S if self._view.asks else REFRESH_S, self._tick)

    def _send(self, said: Answer | Instruct) -> str:
        """Give the answer to the run, with who gave it: a launch of ours is refused by the run itself."""
        assert self._driver is not None, "whoever is asked has seen the run"
        self._driver.take_directive(self._orchestrator.stamp(said))
        return ""
