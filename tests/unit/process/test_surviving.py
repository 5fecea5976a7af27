"""Agents outlive the engine: what lives is adopted, what ended is collected, what vanished is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.clock import SystemClock, boot_id
from agent_orchestrator.engine.launches import Standing, Watch
from agent_orchestrator.engine.process import ProcessLaunches
from agent_orchestrator.engine.process import folder as folders
from tests.unit.process.rig import STOPPED, ending_of, is_alive, killed_driver, make_launches, name, number_in, over, sh, until

AT_WORK = "echo $$ >at_work; "
WAIT = "until [ -e go ]; do sleep 0.01; done; "


def test_an_agent_that_outlives_a_killed_engine_is_adopted(tmp_path: Path) -> None:
    async def play() -> None:
        await killed_driver(tmp_path, AT_WORK + WAIT + "echo finished; exit 3")
        launches = make_launches(tmp_path)
        assert launches.standing(name(), same_boot=True) is Standing.ALIVE
        future = ending_of(launches, name())
        (tmp_path / "go").touch()
        ending = await over(future)
        assert (ending.exit_code, ending.cause, ending.warnings) == (3, None, ())
        assert ending.out.read_text() == "finished\n"
        assert launches.standing(name(), same_boot=True) is Standing.OVER

    asyncio.run(play())


def test_an_agent_that_ended_while_no_engine_lived_is_collected(tmp_path: Path) -> None:
    async def play() -> None:
        await killed_driver(tmp_path, AT_WORK + WAIT + "exit 5")
        (tmp_path / "go").touch()
        launches = make_launches(tmp_path)
        await until(lambda: launches.standing(name(), same_boot=True) is Standing.OVER)
        marked_us = (launches.directory(name()) / "exit.5").stat().st_mtime_ns // 1000
        ending = await over(ending_of(launches, name()))
        assert (ending.exit_code, ending.cause) == (5, None)
        assert ending.ended_us == max(ending.started_us, marked_us)

    asyncio.run(play())


def test_the_end_of_a_collected_launch_is_told_in_the_loops_next_turn_not_in_the_call(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "true"))
        await over(ending_of(launches, name()))
        again = ending_of(launches, name())
        assert not again.done()
        assert (await over(again)).exit_code == 0

    asyncio.run(play())


def test_an_adopted_agent_can_be_stopped(tmp_path: Path) -> None:
    async def play() -> None:
        await killed_driver(tmp_path, "trap 'echo stopping; exit 9' TERM; " + AT_WORK + "while :; do sleep 0.01; done")
        launches = make_launches(tmp_path)
        future = ending_of(launches, name())
        launches.stop(name(), STOPPED)
        ending = await over(future)
        assert (ending.exit_code, ending.cause) == (9, STOPPED)
        assert ending.out.read_text() == "stopping\n"

    asyncio.run(play())


def test_a_time_limit_counts_the_time_before_adoption(tmp_path: Path) -> None:
    async def play() -> None:
        await killed_driver(tmp_path, AT_WORK + "sleep 60")
        folder = make_launches(tmp_path).directory(name())
        birth = folders.read_birth(folder)
        assert birth is not None
        ran_s = 3_600.0
        earlier = msgspec.structs.replace(birth, started_s=birth.started_s - ran_s)
        pid = folders.read_pid(folder)
        (folder / "lock").write_bytes(msgspec.json.encode(earlier) + f"\n{pid}\n".encode())
        launches = make_launches(tmp_path)
        ending = await over(ending_of(launches, name(), Watch(timeout_s=ran_s, grace_s=5)))
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.TIMEOUT

    asyncio.run(play())


def test_shim_and_agent_killed_from_outside_are_lost(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, AT_WORK + "sleep 60"))
        future = ending_of(launches, name())
        await until(lambda: number_in(tmp_path / "at_work"))
        shim = folders.read_pid(launches.directory(name()))
        assert shim is not None
        os.killpg(shim, signal.SIGKILL)
        ending = await over(future)
        assert ending.exit_code is None
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.LOST
        assert "vanished without an exit code" in ending.cause.message

    asyncio.run(play())


def test_lost_while_no_engine_lived_is_found_out_on_collecting(tmp_path: Path) -> None:
    async def play() -> None:
        await killed_driver(tmp_path, AT_WORK + "sleep 60")
        launches = make_launches(tmp_path)
        shim = folders.read_pid(launches.directory(name()))
        assert shim is not None
        os.killpg(shim, signal.SIGKILL)
        await until(lambda: launches.standing(name(), same_boot=True) is Standing.OVER)
        ending = await over(ending_of(launches, name()))
        assert ending.cause is not None
        assert (ending.exit_code, ending.cause.kind) == (None, FailureKind.LOST)

    asyncio.run(play())


@pytest.mark.parametrize("adopted", [False, True])
def test_an_agent_whose_shim_was_killed_is_alive_until_its_lock_is_free_and_then_lost(tmp_path: Path, adopted: bool) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, AT_WORK + "exec sleep 60"))
        await until(lambda: number_in(tmp_path / "at_work"))
        agent, shim = number_in(tmp_path / "at_work"), folders.read_pid(launches.directory(name()))
        assert agent is not None
        assert shim is not None
        if adopted:
            os.kill(shim, signal.SIGKILL)
            await until(lambda: not is_alive(shim))
            launches.close()
            launches = make_launches(tmp_path)
            assert launches.standing(name(), same_boot=True) is Standing.ALIVE
        future = ending_of(launches, name())
        if not adopted:
            os.kill(shim, signal.SIGKILL)
        await until(lambda: not is_alive(shim))
        assert launches.standing(name(), same_boot=True) is Standing.ALIVE
        ending = await over(future)
        assert not is_alive(agent)
        assert ending.cause is not None
        assert (ending.exit_code, ending.cause.kind) == (None, FailureKind.LOST)
        assert ending.warnings == ("A process that was left running by the program had to be stopped.",)

    asyncio.run(play())


def test_a_launch_without_marks_is_new_in_the_same_boot_and_over_after_another(tmp_path: Path) -> None:
    launches = make_launches(tmp_path)
    assert launches.standing(name(), same_boot=True) is Standing.NEW
    assert launches.standing(name(), same_boot=False) is Standing.OVER
    folder = launches.directory(name())
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    assert launches.standing(name(), same_boot=True) is Standing.NEW
    assert launches.standing(name(), same_boot=False) is Standing.OVER


def test_after_a_reboot_a_running_mark_is_a_loss_that_says_so(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "kill -KILL 0"))
        await over(ending_of(launches, name()))
        rebooted = ProcessLaunches(tmp_path / "launches", SystemClock(), "another-boot")
        assert rebooted.standing(name(), same_boot=False) is Standing.OVER
        ending = await over(ending_of(rebooted, name()))
        assert ending.cause is not None
        assert "restarted" in ending.cause.message

    asyncio.run(play())


def test_a_running_mark_torn_by_a_power_cut_is_a_loss(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        folder = launches.directory(name())
        folder.mkdir(parents=True)
        (folder / "lock").write_bytes(b"\0" * 100)
        ending = await over(ending_of(launches, name()))
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.LOST
        assert ending.started_us <= ending.ended_us

    asyncio.run(play())


def test_a_driver_frozen_before_it_marked_anything_is_waited_for(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        folder = launches.directory(name())
        folder.mkdir(parents=True)
        held = folders.take_lock(folder, create=True)
        assert held is not None
        future = ending_of(launches, name())
        await asyncio.sleep(0)
        assert not future.done()
        os.close(held)
        ending = await over(future)
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.LOST

    asyncio.run(play())


def test_a_pid_that_went_to_another_process_is_neither_followed_nor_signalled(tmp_path: Path) -> None:
    """The lock file names a process that is not ours: only the nonce in its environment would make it so."""

    async def play() -> None:
        bystander = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
        launches = make_launches(tmp_path)
        folder = launches.directory(name())
        folder.mkdir(parents=True)
        held = folders.take_lock(folder, create=True)
        assert held is not None
        folders.write_birth(held, folders.Birth(nonce="ab" * 16, boot=boot_id(), started_us=1, started_s=0.0))
        os.write(held, f"{bystander.pid}\n".encode())
        future = ending_of(launches, name(), Watch(grace_s=0.05))
        launches.stop(name(), STOPPED)
        # A launch of ours that ignores TERM is stopped after it: once that is over, TERM and KILL have had their turn.
        launches.start(sh(tmp_path, "trap '' TERM; " + AT_WORK + "while :; do sleep 0.05; done", effect=name(2)))
        stubborn = ending_of(launches, name(2), Watch(grace_s=0.2))
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(2), STOPPED)
        await over(stubborn)
        assert not future.done()
        assert bystander.returncode is None
        assert is_alive(bystander.pid)
        os.close(held)
        assert (await over(future)).cause == STOPPED
        assert is_alive(bystander.pid)
        bystander.kill()
        await bystander.wait()

    asyncio.run(play())


def test_an_unreaped_shim_is_dead_although_its_pid_answers(tmp_path: Path) -> None:
    """A zombie passes kill(0); an adopting engine must not wait for it."""

    async def play() -> None:
        starter, adopter = make_launches(tmp_path), make_launches(tmp_path)
        starter.start(sh(tmp_path, "exit 6"))
        await until(lambda: starter.standing(name(), same_boot=True) is Standing.OVER)
        shim = folders.read_pid(starter.directory(name()))
        assert shim is not None
        os.kill(shim, 0)
        assert not is_alive(shim)
        assert (await over(ending_of(adopter, name()))).exit_code == 6
        os.kill(shim, 0)
        assert (await over(ending_of(starter, name()))).exit_code == 6
        with pytest.raises(ProcessLookupError):
            os.kill(shim, 0)

    asyncio.run(play())


def test_the_living_store_of_a_run_are_found_by_their_locks(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        assert launches.living(RunId("run1")) == []
        launches.start(sh(tmp_path, "exit 0"))
        launches.start(sh(tmp_path, WAIT, effect=name(2)))
        launches.start(sh(tmp_path, WAIT, effect=name(3, run="run2")))
        await over(ending_of(launches, name()))
        (tmp_path / "launches" / "run1" / "stray-file").touch()
        (tmp_path / "launches" / "run1" / "stray~file").touch()
        assert launches.living(RunId("run1")) == [name(2)]
        futures = [ending_of(launches, name(2)), ending_of(launches, name(3, run="run2"))]
        (tmp_path / "go").touch()
        for future in futures:
            await over(future)
        assert launches.living(RunId("run1")) == []

    asyncio.run(play())


def test_a_launch_that_was_stopped_is_unsettled_for_every_process_until_its_end_is_settled(tmp_path: Path) -> None:
    async def play() -> None:
        stopper, later = make_launches(tmp_path), make_launches(tmp_path)
        for launch in (1, 2):
            stopper.start(sh(tmp_path, WAIT, effect=name(launch)))
        futures = [ending_of(stopper, name(1)), ending_of(stopper, name(2))]
        assert later.unsettled(RunId("run1")) == [name(1), name(2)], "both live"
        stopper.stop(name(1), STOPPED)
        (tmp_path / "go").touch()
        for future in futures:
            await over(future)
        assert later.unsettled(RunId("run1")) == [name(1)], "the other ended by itself"
        later.settle(name(1))
        assert make_launches(tmp_path).unsettled(RunId("run1")) == []

    asyncio.run(play())


def test_a_voided_launch_never_starts_and_a_started_one_is_not_voided(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.void(name())
        launches.start(sh(tmp_path, "touch started"))
        assert launches.standing(name(), same_boot=True) is Standing.OVER
        launches.start(sh(tmp_path, WAIT + "exit 2", effect=name(2)))
        launches.void(name(2))
        (tmp_path / "go").touch()
        assert (await over(ending_of(launches, name(2)))).exit_code == 2
        launches.void(name(2))
        assert not (launches.directory(name(2)) / "void").exists()

    asyncio.run(play())
    assert not (tmp_path / "started").exists()
