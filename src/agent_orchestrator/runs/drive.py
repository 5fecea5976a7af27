"""Drives runs in this process for programs that embed us: events come as plain data, notes as sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.inputs import Given
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.runs.follow import JournalEntry, make_entries
from agent_orchestrator.runs.notify.notifier import notifying
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.pull_request import open_wanted
from agent_orchestrator.runs.start import Change
from agent_orchestrator.runs.takeup import take_up
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.engine.engine import Observer


class Callbacks:
    """An observer that calls a function for each event and one for each note."""

    def __init__(self, on_event: Callable[[JournalEntry], object] | None, on_notice: Callable[[str], object] | None) -> None:
        self._on_event, self._on_notice = on_event, on_notice

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Tell each event."""
        if self._on_event is not None:
            for entry in make_entries(driver.run.id, (driver.seq, at_us, events), driver.summary()):
                self._on_event(entry)

    def noticed(self, driver: Driver, text: str) -> None:
        """Tell a note."""
        self.note(text)

    def note(self, text: str) -> None:
        """Tell something that a person should know."""
        if self._on_notice is not None:
            self._on_notice(text)


def drive_here(orchestrator: Orchestrator, run: StoredRun, callbacks: Callbacks, change: Change, *, wait: bool) -> Summary:
    """Drive a run that was just started, or take one up again first; raise RunBusy while another process drives it."""
    owner = orchestrator.owned(run.id)
    inputs: Sequence[Given] = ()
    if owner is None:
        owner = orchestrator.own(run.id)
        try:
            run = orchestrator.find(run.id)
            taken = take_up(orchestrator, run, change)
            inputs = taken.inputs
            for note in taken.notes:
                callbacks.note(note)
        except BaseException:
            owner.release()
            raise

    def stays(driver: Driver) -> bool:
        return wait or not (driver.waits_only_for_people() or driver.is_parked())

    with notifying(orchestrator, (), callbacks.note):
        return drive_to_rest(orchestrator, run, owner, callbacks, stays, inputs)


def drive_to_rest(
    orchestrator: Orchestrator,
    run: StoredRun,
    owner: Owned,
    observer: Observer,
    stays: Callable[[Driver], bool],
    inputs: Sequence[Given],
) -> Summary:
    """Drive a run until it ends or rests, and let go of it."""
    try:
        summary = orchestrator.drive_owned(run, observer, stays, inputs)
    finally:
        owner.release()
        # Now nobody drives it, and what spans runs says so, unless the store is away: then whoever comes next does.
        with contextlib.suppress(StoreAway):
            orchestrator.overviews().write(find_system(run.system), Path(run.context.home))
    if summary.status == "completed" and run.context.pull_request is not None:
        open_wanted(orchestrator, orchestrator.find(run.id))
    return summary
