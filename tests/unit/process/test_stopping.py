"""The stop ladder: TERM, grace, KILL, and the sweep for what left the group."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.kinship import NONCE_VARIABLE
from agent_orchestrator.engine.launches import Order, Standing, Watch
from agent_orchestrator.engine.process import folder as folders
from tests.unit.process.rig import (
    STOPPED,
    ending_of,
    is_alive,
    make_launches,
    name,
    number_in,
    order,
    over,
    run_to_end,
    sh,
    until,
)

AT_WORK = "echo $$ >at_work; "
LEAVE = "import subprocess, sys; print(subprocess.Popen(['sleep', '60'], start_new_session={session}, close_fds={close}).pid)"


def left_behind(tmp_path: Path, *, session: bool, close: bool, then: str = "") -> Order:
    """A program that starts another and ends (or does something else) while that one runs."""
    return order(tmp_path, sys.executable, "-c", LEAVE.format(session=session, close=close) + then)


def test_a_stopped_agent_gets_term_first_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "trap 'echo cleaning up; exit 42' TERM; " + AT_WORK + "while :; do sleep 0.01; done"))
        future = ending_of(launches, name())
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(), STOPPED)
        ending = await over(future)
        assert (ending.exit_code, ending.cause, ending.warnings) == (42, STOPPED, ())
        assert ending.out.read_text() == "cleaning up\n"

    asyncio.run(play())


def test_an_agent_that_ignores_term_is_killed_after_its_grace(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "trap '' TERM; " + AT_WORK + "while :; do sleep 0.05; done"))
        future = ending_of(launches, name(), Watch(grace_s=0.1))
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(), STOPPED)
        ending = await over(future)
        agent = number_in(tmp_path / "at_work")
        assert agent is not None
        assert not is_alive(agent)
        assert ending.cause == STOPPED
        assert ending.exit_code in {None, 128 + signal.SIGKILL}

    asyncio.run(play())


def test_stopping_twice_keeps_the_first_cause_and_tells_the_end_once(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, AT_WORK + "sleep 60"))
        future = ending_of(launches, name())
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(), STOPPED)
        launches.stop(name(), STOPPED.__class__(kind=FailureKind.TIMEOUT, message="later"))
        assert (await over(future)).cause == STOPPED
        launches.stop(name(), STOPPED)

    asyncio.run(play())


def test_stopping_at_once_after_the_start_leaves_nothing_alive(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        for launch in range(1, 21):
            launches.start(sh(tmp_path, "sleep 60", effect=name(launch)))
            future = ending_of(launches, name(launch), Watch(grace_s=0.5))
            launches.stop(name(launch), STOPPED)
            assert (await over(future)).cause == STOPPED
            assert launches.standing(name(launch), same_boot=True) is Standing.OVER

    asyncio.run(play())


def test_an_agent_that_ended_by_itself_before_the_stop_keeps_its_own_ending(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "exit 0"))
        future = ending_of(launches, name())
        # Nothing awaits here, so the watcher cannot have noticed the end when the stop comes.
        folder = launches.directory(name())
        while not (folder / "exit.0").exists() or folders.is_locked(folder):  # The mark counts once its shim is gone.
            continue
        launches.stop(name(), STOPPED)
        ending = await over(future)
        assert (ending.exit_code, ending.cause) == (0, None)

    asyncio.run(play())


@pytest.mark.parametrize("close", [False, True])
def test_a_child_that_left_with_setsid_is_swept(tmp_path: Path, close: bool) -> None:
    """With close_fds it does not even hold the lock: only the nonce in its environment finds it."""

    async def play() -> None:
        launches = make_launches(tmp_path)
        wait = "; sys.stdout.flush(); import signal; signal.pause()"
        launches.start(left_behind(tmp_path, session=True, close=close, then=wait))
        future = ending_of(launches, name(), Watch(grace_s=0.2))
        out = launches.directory(name()) / "out"
        await until(lambda: number_in(out))
        child = number_in(out)
        assert child is not None
        launches.stop(name(), STOPPED)
        ending = await over(future)
        assert ending.cause == STOPPED
        assert not is_alive(child)

    asyncio.run(play())


def test_a_grandchild_of_a_nested_orchestrator_is_reached_by_the_outer_stop(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        inner = (
            f"import os, subprocess, sys; env = dict(os.environ); env['{NONCE_VARIABLE}'] += ':inner'\n"
            "print(subprocess.Popen(['sleep', '60'], start_new_session=True, env=env).pid, flush=True)\n"
            "import signal; signal.pause()"
        )
        launches.start(order(tmp_path, sys.executable, "-c", inner))
        future = ending_of(launches, name(), Watch(grace_s=0.2))
        out = launches.directory(name()) / "out"
        await until(lambda: number_in(out))
        child = number_in(out)
        assert child is not None
        launches.stop(name(), STOPPED)
        await over(future)
        assert not is_alive(child)

    asyncio.run(play())


@pytest.mark.parametrize(("session", "close"), [(False, False), (True, False), (False, True)])
def test_what_an_ended_agent_leaves_running_is_stopped_with_a_warning(tmp_path: Path, session: bool, close: bool) -> None:
    ending = run_to_end(tmp_path, left_behind(tmp_path, session=session, close=close))
    child = number_in(ending.out)
    assert child is not None
    assert not is_alive(child)
    assert (ending.exit_code, ending.cause) == (0, None)
    assert ending.warnings == ("A process that was left running by the program had to be stopped.",)


def test_a_leftover_that_finishes_by_itself_is_waited_for_without_a_warning(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "(sleep 0.2; echo late) & exit 0"))
    assert (ending.exit_code, ending.warnings) == (0, ())
    assert ending.out.read_text() == "late\n"


def test_a_daemon_that_let_go_of_group_session_lock_and_output_is_found_by_its_mark_and_stopped(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, left_behind(tmp_path, session=True, close=True))
    child = number_in(ending.out)
    assert child is not None
    assert not is_alive(child)
    assert (ending.exit_code, len(ending.warnings)) == (0, 1)


def test_many_are_stopped_together(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        effects = [name(launch) for launch in range(1, 41)]
        for effect in effects:
            launches.start(sh(tmp_path, "sleep 60", effect=effect))
        futures = [ending_of(launches, effect) for effect in effects]
        for effect in effects:
            launches.stop(effect, STOPPED)
        assert [(await over(future)).cause for future in futures] == [STOPPED] * 40

    asyncio.run(play())
