"""Bursts of starts and ends are spread over turns of the loop, so that a thousand agents stall nobody."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.engine.launches import Order
from agent_orchestrator.engine.slices import SLICE_S, SliceQueue
from agent_orchestrator.testing.clock import FakeClock, run_jumping
from agent_orchestrator.testing.world import SimulatedLaunches
from tests.unit.engine.rig import Rig, agent, until

STARTS = 1_000
START_S = 0.001
PER_SLICE = int(SLICE_S / START_S) + 1


def test_a_turn_never_does_more_than_a_slice() -> None:
    clock = FakeClock()
    done: list[int] = []
    turns: list[int] = []

    async def main() -> None:
        slices = SliceQueue(asyncio.get_running_loop(), clock)

        def act(number: int) -> None:
            clock.advance(START_S)
            done.append(number)

        for number in range(100):
            slices.add(partial(act, number))
        while len(done) < 100:
            before = len(done)
            await asyncio.sleep(0)
            turns.append(len(done) - before)

    run_jumping(main(), clock)
    assert done == list(range(100)), "in order"
    assert max(turns) <= PER_SLICE


def test_what_an_action_adds_comes_after_it_and_nothing_is_lost_when_one_fails_to_end_a_turn() -> None:
    clock, done = FakeClock(), list[str]()

    async def main() -> None:
        slices = SliceQueue(asyncio.get_running_loop(), clock)

        def first() -> None:
            done.append("first")
            slices.add(lambda: done.append("third"))

        slices.add(first)
        slices.add(lambda: done.append("second"))
        await until(lambda: len(done) == 3)

    run_jumping(main(), clock)
    assert done == ["first", "second", "third"]


def test_the_first_of_a_turn_is_done_at_once_with_what_it_adds_and_the_next_waits_for_its_turn() -> None:
    clock, done = FakeClock(), list[str]()

    async def main() -> None:
        slices = SliceQueue(asyncio.get_running_loop(), clock)

        def first() -> None:
            done.append("first")
            slices.now(lambda: done.append("second"))
            done.append("first is over")

        slices.now(first)
        assert done == ["first", "first is over", "second"]
        slices.now(lambda: done.append("third"))
        assert "third" not in done, "others on the loop come before it"
        await asyncio.sleep(0)
        assert done[-1] == "third"
        slices.now(lambda: done.append("fourth"))
        assert done[-1] == "fourth", "a turn of its own"

    run_jumping(main(), clock)


def test_what_is_done_at_once_lasts_no_longer_than_a_slice() -> None:
    clock, done = FakeClock(), list[int]()

    async def main() -> None:
        slices = SliceQueue(asyncio.get_running_loop(), clock)

        def act(number: int) -> None:
            clock.advance(START_S)
            done.append(number)
            slices.add(partial(act, number + 1))

        slices.now(partial(act, 0))
        assert len(done) == PER_SLICE - 1
        slices.clear()

    run_jumping(main(), clock)


class Slow(SimulatedLaunches):
    """Each start takes a millisecond of the process's time."""

    def start(self, order: Order) -> None:
        self._machine.clock.advance(START_S)
        super().start(order)


def test_a_thousand_starts_leave_the_loop_to_others(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.launches = lambda: Slow(rig.machine)
    run = rig.toys(*(agent(f"s{number}") for number in range(STARTS)))
    turns: list[int] = []

    async def beat(engine: Engine) -> None:
        while len(rig.machine.starts) < STARTS:
            before = len(rig.machine.starts)
            await asyncio.sleep(0)
            turns.append(len(rig.machine.starts) - before)

    assert rig.drive(run, beat).status == "completed"
    assert max(turns) <= PER_SLICE
