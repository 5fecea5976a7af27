"""A thousand launches that are due at once are looked at in slices: an end that comes meanwhile waits for one slice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_orchestrator.engine.launches import Watch
from agent_orchestrator.engine.process.agenda import Agenda
from agent_orchestrator.engine.process.watched import Shim, Watched
from agent_orchestrator.engine.slices import SLICE_S
from agent_orchestrator.testing.clock import FakeClock, run_jumping
from tests.unit.process.rig import name

LAUNCHES, LOOK_S = 1_000, 0.001


def launch(number: int, clock: FakeClock) -> Watched:
    return Watched(name(number), Path(), Shim(pidfds=False), Watch(), lambda ending: None, clock.monotonic_s())


def test_an_end_waits_for_no_more_than_a_slice_of_the_launches_that_are_due() -> None:
    clock, looked, waited = FakeClock(), list[str](), list[int]()
    due = [launch(number, clock) for number in range(LAUNCHES)]

    async def main() -> None:
        all_looked = asyncio.Event()

        def look(watched: Watched) -> None:
            clock.advance(LOOK_S)
            looked.append(watched.effect)
            if len(looked) == 1:
                agenda.slices.add(lambda: waited.append(len(looked)))
            if len(looked) == LAUNCHES:
                all_looked.set()

        agenda = Agenda(clock, asyncio.get_running_loop(), look)
        for watched in due:
            agenda.set(watched, 1.0)
        await all_looked.wait()

    run_jumping(main(), clock)
    assert waited[0] <= SLICE_S / LOOK_S + 1
    assert looked == [watched.effect for watched in due]


def test_only_the_last_date_of_a_launch_counts_and_one_that_was_dropped_has_none() -> None:
    clock, looked = FakeClock(), list[str]()
    moved, dropped, last = (launch(number, clock) for number in range(3))

    async def main() -> None:
        over = asyncio.Event()

        def look(watched: Watched) -> None:
            looked.append(watched.effect)
            if watched is last:
                over.set()

        agenda = Agenda(clock, asyncio.get_running_loop(), look)
        for watched in (moved, dropped):
            agenda.set(watched, 1.0)
        agenda.set(moved, 5.0)
        agenda.drop(dropped)
        agenda.set(last, 10.0)
        began_s = clock.monotonic_s()
        await over.wait()
        assert clock.monotonic_s() - began_s >= 9.0

    run_jumping(main(), clock)
    assert looked == [moved.effect, last.effect]
