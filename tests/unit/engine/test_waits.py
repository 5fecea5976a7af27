"""Effects that only wait: deadlines by the wall clock, gates kept in a file, a file of the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import AwaitGates, ReadFile, Wait
from agent_orchestrator.core.inputs import Abort, FileRead, GatesOpened, TimerFired
from agent_orchestrator.core.limits import WAIT_RECHECK_S
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.engine import Engine
from tests.unit.engine.rig import Rig, agent, jump, named, until
from tests.unit.engine.toy import Did


def wait(rig: Rig, seconds: float) -> Wait:
    return Wait(id=named("a", "wait"), unit="a", until_us=rig.clock.now_us() + int(seconds * US), reason="backing off")


def outcome(rig: Rig, run: Any) -> Any:
    (done,) = rig.of_kind(run, Did)
    return done.outcome


def test_a_timer_fires_at_its_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    effect = wait(rig, 100)
    run = rig.toys(effect)
    rig.drive(run)
    assert outcome(rig, run) == TimerFired(effect=effect.id)
    assert round(rig.clock.monotonic_s()) == 100


def test_a_timer_whose_time_passed_while_nobody_drove_fires_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 100))
    rig.clock.advance(500)
    rig.drive(run)
    assert rig.clock.monotonic_s() < 501


def test_a_timer_notices_within_half_a_minute_that_the_machine_was_suspended(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 8 * 3600))

    async def sleep_the_night(engine: Engine) -> None:
        await jump(engine, 10)
        rig.clock.set_wall(9 * 3600)  # In suspend the wall clock goes on and the monotonic one stands still.

    rig.drive(run, sleep_the_night)
    assert rig.clock.monotonic_s() <= 10 + WAIT_RECHECK_S + 1


def test_a_clock_that_is_set_back_makes_no_wait_longer(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 60))

    async def set_back(engine: Engine) -> None:
        await jump(engine, 10)
        rig.clock.set_wall(-3600)

    rig.drive(run, set_back)
    assert round(rig.clock.monotonic_s()) == 60


def test_a_clock_that_was_set_back_while_nobody_drove_makes_no_wait_longer(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 60))
    rig.clock.set_wall(-3600)
    rig.drive(run)
    assert round(rig.clock.monotonic_s()) == 60


def test_a_fired_timer_stays_fired_when_the_clock_goes_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 5), agent("b"))

    async def set_back(engine: Engine) -> None:
        await until(lambda: engine.drivers["one"].state.outcomes)
        rig.clock.set_wall(-3600)

    rig.drive(run, set_back)
    assert len(rig.of_kind(run, Did)) == 2


def test_a_wait_is_dropped_without_an_outcome_when_it_is_no_longer_wanted(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(wait(rig, 3600))

    async def abort(engine: Engine) -> None:
        await jump(engine, 1)
        engine.drivers["one"].deliver(Abort(id="d1"))

    assert rig.drive(run, abort).status == "aborted"
    assert rig.of_kind(run, Did) == []
    assert rig.clock.monotonic_s() < 10


def test_gates_open_when_every_name_is_true_and_a_missing_file_is_said_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    file = tmp_path / "gates.json"
    effect = AwaitGates(id=named("a", "gates"), unit="a", file=str(file), names=("qa", "security"))
    run = rig.toys(effect)

    async def open_one_by_one(engine: Engine) -> None:
        broken = ("", "[true]", '{"qa": ' + "[" * 100_000)
        closed = ('{"qa": true}', '{"qa": true, "security": 1}')
        for text in (*broken, *closed, '{"qa": true, "security": true}'):
            await jump(engine, 5)
            assert not engine.drivers["one"].state.outcomes
            file.write_text(text)

    rig.drive(run, open_one_by_one)
    assert outcome(rig, run) == GatesOpened(effect=effect.id)
    assert [notice.count("does not exist yet") for notice in rig.notes.notices][:1] == [1]
    assert len(rig.notes.notices) == 4, "missing, empty, no object, too deep: each is said once, however often it is looked at"


@pytest.mark.parametrize(
    ("path", "said"),
    [("list.txt", None), ("none.txt", "No such file"), ("../outside.txt", "outside the working tree"), ("link", "outside")],
)
def test_a_file_of_the_tree_is_read_and_nothing_outside_it(path: str, said: str | None, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (rig.home / "list.txt").write_text("one\ntwo\n")
    (tmp_path / "outside.txt").write_text("secret")
    (rig.home / "link").symlink_to(tmp_path / "outside.txt")
    run = rig.toys(ReadFile(id=named("a", "read"), unit="a", path=path))
    rig.drive(run)
    read = outcome(rig, run)
    assert isinstance(read, FileRead)
    assert read.text == ("one\ntwo\n" if said is None else "")
    assert said is None or (read.failure is not None and said in read.failure.message)
