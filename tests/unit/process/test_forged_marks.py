"""Marks of an end that the shim did not make: they end, complete and forge nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.engine.launches import Standing
from agent_orchestrator.engine.process.folder import Birth, last_sign_ns, take_lock, write_birth
from tests.unit.process.rig import STOPPED, ending_of, make_launches, name, over, run_to_end, sh, until

HERE = 'cd "$(dirname "$(readlink /proc/$$/fd/1)")"; '
"""A program finds its own launch folder by where its output goes."""


def test_a_mark_that_somebody_else_made_does_not_count_beside_the_shims_own(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, HERE + "touch exit.0; exit 1"))
    assert (ending.exit_code, ending.cause) == (1, None)
    assert [warning for warning in ending.warnings if "somebody else made them" in warning]


@pytest.mark.parametrize("rename", ["mv lock exit.0", "mv exit.1 exit.0", "touch exit.0"])
def test_a_mark_of_its_own_end_does_not_end_a_program_that_is_stopped(tmp_path: Path, rename: str) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, f"{HERE}touch exit.1; {rename}; touch forged; exec sleep 60"))
        future = ending_of(launches, name())
        await until((launches.directory(name()) / "forged").exists)
        launches.stop(name(), STOPPED)
        assert (await over(future)).cause == STOPPED

    asyncio.run(play())


def test_several_marks_of_an_adopted_launch_are_no_end_that_is_believed(tmp_path: Path) -> None:
    async def play() -> None:
        first = make_launches(tmp_path)
        first.start(sh(tmp_path, "exit 1"))
        folder = first.directory(name())
        await until((folder / "exit.1").exists)
        first.close()
        (folder / "exit.0").touch()
        ending = await over(ending_of(make_launches(tmp_path), name()))
        assert ending.exit_code is None
        assert ending.cause is not None
        assert (ending.cause.kind, "somebody else" in ending.cause.message) == (FailureKind.LOST, True)

    asyncio.run(play())


def test_what_was_put_where_a_launch_is_to_be_made_is_moved_away_and_the_program_runs(tmp_path: Path) -> None:
    launches = make_launches(tmp_path)
    folder = launches.directory(name())
    folder.mkdir(parents=True)
    (folder / "lock").write_text("{}")
    (folder / "exit.0").touch()
    planted = launches.claim(name())
    assert planted is not None
    assert sorted(file.name for file in planted.iterdir()) == ["exit.0", "lock"]
    assert launches.claim(name()) is None
    assert launches.living(RunId("run1")) == launches.unsettled(RunId("run1")) == []
    assert run_to_end(tmp_path, sh(tmp_path, "exit 3")).exit_code == 3


def test_a_launch_that_took_its_lock_away_is_not_started_again(tmp_path: Path) -> None:
    run_to_end(tmp_path, sh(tmp_path, HERE + "rm lock"))
    folder = make_launches(tmp_path).directory(name())
    for mark in folder.glob("exit.*"):
        mark.unlink()
    assert make_launches(tmp_path).standing(name(), same_boot=True) is Standing.OVER


def test_a_lost_launch_may_have_lived_until_it_was_found_dead(tmp_path: Path) -> None:
    async def play() -> None:
        first = make_launches(tmp_path)
        first.start(sh(tmp_path, "kill -9 $PPID; kill -9 $$"))
        folder = first.directory(name())
        await until(lambda: (folder / "out").exists() and first.living(RunId("run1")) == [])
        assert last_sign_ns(folder, same_boot=True) > 2**62, "nobody has proven its end"
        ending = await over(ending_of(first, name()))
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.LOST
        assert last_sign_ns(folder, same_boot=True) == (folder / "lost").stat().st_ctime_ns

    asyncio.run(play())


def test_a_launch_of_any_run_counts_for_what_appeared_meanwhile(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        other = name(run="run2")
        launches.start(sh(tmp_path, "sleep 60", effect=other))
        future = ending_of(launches, other)
        await until((launches.directory(other) / "out").exists)
        now_ns = (launches.directory(other) / "out").stat().st_ctime_ns
        assert launches.alive_between(now_ns, now_ns) == other
        assert launches.alive_between(now_ns, now_ns, RunId("run1")) is None
        assert launches.alive_between(0, 1) is None
        launches.stop(other, STOPPED)
        await over(future)

    asyncio.run(play())


@pytest.mark.parametrize(
    ("changed_ns", "started_us", "lived"),
    [
        pytest.param(7_123_456_789, 7_123_456, True, id="after the start"),
        pytest.param(7_123_456_789, 7_132_000, True, id="in the tick of the start"),
        pytest.param(7_123_456_789, 7_134_000, False, id="before the start"),
        pytest.param(7_000_000_000, 8_900_000, True, id="in the second of the start, where files have no finer time"),
        pytest.param(7_000_000_000, 9_100_000, False, id="in a second before the start"),
    ],
)
def test_a_file_changed_in_the_first_moment_of_a_launch_is_dated_before_it(
    tmp_path: Path, changed_ns: int, started_us: int, lived: bool
) -> None:
    launches = make_launches(tmp_path)
    folder = launches.directory(name())
    folder.mkdir(parents=True)
    lock = take_lock(folder, create=True)
    assert lock is not None
    write_birth(lock, Birth(nonce="0" * 32, boot=boot_id(), started_us=started_us, started_s=0.0))
    assert (launches.alive_between(changed_ns, changed_ns) == name()) is lived
    os.close(lock)


LINKED = 'mv "$PWD" "$PWD.moved" && ln -s "$PWD.moved" "$PWD"'
TAKEN = {"its lock": "rm lock", "its folder": 'rm -r "$PWD"', "a link to its folder": LINKED}


@pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)
def test_a_launch_that_takes_its_marks_away_is_known_to_have_lived(tmp_path: Path, take: str) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        done, go = tmp_path / "done", tmp_path / "go"
        launches.start(sh(tmp_path, f"{HERE}{take}; cd /; touch {done}; until test -e {go}; do sleep 0.01; done"))
        future = ending_of(launches, name())
        await until(done.exists)
        then_ns = done.stat().st_ctime_ns
        assert launches.alive_between(then_ns, then_ns) == name(), "while it is alive"
        go.touch()
        await over(future)
        assert launches.alive_between(then_ns, then_ns) == name(), "after its end"
        assert make_launches(tmp_path).alive_between(then_ns, then_ns) == name(), "for another process"

    asyncio.run(play())


def test_a_link_in_the_place_of_its_lock_does_not_keep_a_launch_from_ending(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, HERE + "rm lock; ln -s /dev/null lock; exit 3"))
    assert ending.exit_code == 3
