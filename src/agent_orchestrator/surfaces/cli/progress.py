"""Shows a run while this process drives it: one line per event, or a live view on a terminal.

An observer must never stop the run it watches: when nobody reads any more, it goes quiet.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import Event, TakenUp
from agent_orchestrator.surfaces.cli.phrases import clock_time, say_event
from agent_orchestrator.surfaces.cli.screen import Screen, plain, shorten
from agent_orchestrator.systems import about

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

UNIT_WIDTH = 20

_VERDICT = re.compile(r"\b(?:(passed|completed|approved)|failed|rejected)\b")


class Watcher(Protocol):
    """An observer that is told when the run rests."""

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Some events are durable."""

    def noticed(self, driver: Driver, text: str) -> None:
        """Something a person should know."""

    def finish(self) -> None:
        """The run rests; nothing more will be told."""


class Writer:
    """Lines that stop quietly when the reader goes away: the run goes on."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._gone = False

    def line(self, text: str) -> None:
        """Writes one line at once."""
        if self._gone:
            return
        try:
            self._out.write(text + "\n")
            self._out.flush()
        except OSError:  # a closed pipe, or a terminal that was hung up
            self._gone = True


def event_lines(system: str, events: Sequence[Event], at_us: int, screen: Screen) -> list[str]:
    """Return the events of a system's run as people read them: `12:03:04  coding  started (attempt 1)`."""
    lines = []
    for event in events:
        told = say_event(system, event)
        if told.quiet:
            continue
        unit = shorten(told.unit or "run", UNIT_WIDTH)
        words = plain(told.words)
        if screen.terminal:
            words = shorten(words, max(20, screen.width - 10 - max(8, len(unit)) - 2))
        lines.append(f"{clock_time(at_us)}  {screen.paint(unit.ljust(8), 'bold')}  {paint_verdict(words, screen)}")
    return lines


def paint_verdict(words: str, screen: Screen) -> str:
    """Return a line with the word that says how something ended in green or red; what is quoted after a colon stays plain."""
    said, colon, quoted = words.partition(":")
    painted = _VERDICT.sub(lambda found: screen.paint(found[0], "green" if found[1] else "red"), said, count=1)
    return f"{painted}{colon}{quoted}"


def say_ways(run: StoredRun, effect: AskHuman) -> list[str]:
    """Return what a person types, or writes, to answer."""
    if effect.in_words:
        return [f"answer:   {about(run.system).answer}"]
    lines = [
        f"approve:  orc approve {run.id} {effect.unit}",
        f"reject:   orc reject {run.id} {effect.unit} --comments 'what to change'",
    ]
    if effect.answer_file:
        file = shlex.quote(str(Path(run.context.home, effect.answer_file)))
        lines.append(f"or:       echo '{{\"approved\": true}}' > {file}")
    return lines


def new_questions(state: Any, events: Sequence[Event]) -> list[AskHuman]:
    """Return what the run began to ask people with these events; all it asks, when it was just taken up."""
    if any(isinstance(event, TakenUp) for event in events):
        asked = list(state.doing)
    else:
        units = dict.fromkeys(unit for event in events if (unit := getattr(event, "step", None)) is not None)
        asked = [state.doing.of(unit) for unit in units]
    return [effect for effect in asked if isinstance(effect, AskHuman)]


class Lines:
    """One line per event."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.writer = Writer(screen.out)

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Tells the events, and how to answer what the run asks."""
        for line in event_lines(driver.run.system, events, at_us, self.screen):
            self.tell(line)
        told = {getattr(event, "effect", None) for event in events}
        for effect in new_questions(driver.state, events):
            if effect.id not in told:  # It was asked before the run was taken up.
                asked = f": {plain(effect.question)}" if effect.question else ""
                self.tell(f"{clock_time(at_us)}  {shorten(effect.unit, UNIT_WIDTH):8}  waiting for an answer{asked}")
            for line in say_ways(driver.run, effect):
                self.tell(f"{'':10}{line}")

    def tell(self, line: str) -> None:
        """Writes one line."""
        self.writer.line(line)

    def noticed(self, driver: Driver, text: str) -> None:
        """Tells what is no fact of the run."""
        self.tell(f"{clock_time(driver.engine.clock.now_us())}  {self.screen.paint('note', 'yellow')}      {plain(text)}")

    def finish(self) -> None:
        """Nothing is held back."""

    def has_left(self) -> bool:
        """Say whether the person does not want to wait any longer; nobody can say so here."""
        return False


class Several:
    """Observers side by side."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Tells each."""
        for watcher in self._watchers:
            watcher.happened(driver, events, at_us)

    def noticed(self, driver: Driver, text: str) -> None:
        """Tells each."""
        for watcher in self._watchers:
            watcher.noticed(driver, text)

    def finish(self) -> None:
        """Finishes each."""
        for watcher in self._watchers:
            watcher.finish()


class Quiet(Lines):
    """Only what a person must act upon."""

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Facts are for those who ask."""


def make_watcher(orchestrator: Orchestrator, run: StoredRun, screen: Screen, *, quiet: bool) -> Lines:
    """The way of showing that fits where we write."""
    if quiet:
        return Quiet(Screen({}, sys.stderr))
    if screen.drawable:
        from agent_orchestrator.surfaces.cli.live.watcher import LiveWatcher

        return LiveWatcher(orchestrator, run, screen)
    return Lines(screen)
