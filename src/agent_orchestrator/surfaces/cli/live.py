"""The live table of a run on a terminal: events scroll by, what is going on stands below. Only this module uses rich."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agent_orchestrator.core.effects import AskHuman, AwaitGates, Checkpoint, Merge, ReadFile, RunAgent, RunCheck, Wait
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import US, from_iso, say_duration
from agent_orchestrator.surfaces.cli.phrases import clock_time
from agent_orchestrator.surfaces.cli.progress import Lines
from agent_orchestrator.surfaces.cli.screen import Screen, shorten

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

ROWS_MAX = 12
REFRESH_S = 0.5


class Panel:
    """The lines that stand below those that scroll."""

    def __init__(self, screen: Screen) -> None:
        self._console = Console(file=screen.out, no_color=not screen.colour, highlight=False, soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def tell(self, line: str) -> None:
        """One line above the table."""
        with contextlib.suppress(OSError):  # the terminal was hung up: the run goes on
            self._console.print(Text.from_ansi(line))

    def draw(self, state: Any, summary: Summary, now_us: int) -> None:
        """The table as of now."""
        table = Table.grid(padding=(0, 2))
        for effect in islice(state.doing, ROWS_MAX):
            started = state.steps[effect.unit].started_at
            took = say_duration(max(0, now_us - from_iso(started)) / US) if started else ""
            table.add_row(Text(shorten(effect.unit, 28), style="bold"), doing_words(effect), took)
        if len(state.doing) > ROWS_MAX:
            table.add_row("", f"and {len(state.doing) - ROWS_MAX} more", "")
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=max(1, summary.total), completed=summary.done, width=24),
            f"{summary.done}/{summary.total} done" + (f", {summary.failed} failed" if summary.failed else ""),
            summary.status,
        )
        with contextlib.suppress(OSError):
            self._live.update(Group(table, bar), refresh=True)

    def close(self) -> None:
        """Takes the table away."""
        with contextlib.suppress(OSError):
            self._live.stop()


def doing_words(effect: object) -> str:
    """Say what a unit does, in a word or two."""
    match effect:
        case RunAgent():
            more = f", iteration {effect.iteration}" if effect.iteration else ""
            return f"{effect.role} at work (attempt {effect.attempt}{more})"
        case RunCheck():
            return shorten(f"check: {effect.command}", 48)
        case AskHuman():
            return "waits for a person"
        case Wait():
            return f"tries again at {clock_time(effect.until_us)}"
        case AwaitGates():
            return shorten(f"waits for gates: {', '.join(effect.names)}", 48)
        case ReadFile():
            return "reads its items"
        case Checkpoint():
            return "saves the tree"
        case Merge():
            return shorten(f"merges into {effect.into}", 48)
        case _:
            return type(effect).__name__


class LiveTable(Lines):
    """The observer of a run that is driven at a terminal."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self._panel = Panel(screen)
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, line: str) -> None:
        """One line above the table."""
        self._panel.tell(line)

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Tells the events; the table follows within half a second."""
        super().happened(driver, events, at_us)
        if self._timer is None:
            self._tick(driver)

    def _tick(self, driver: Driver) -> None:
        self._panel.draw(driver.state, driver.summary(), driver.engine.clock.now_us())
        self._timer = driver.engine.loop.call_later(REFRESH_S, self._tick, driver)

    def finish(self) -> None:
        """Takes the table away; what was told stays."""
        if self._timer is not None:
            self._timer.cancel()
        self._panel.close()
