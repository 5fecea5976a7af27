"""Other shells than dash, and systems without process descriptors."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.launches import Standing, Watch
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.shim import SHIM, SHIM_NAME
from tests.unit.process.rig import (
    ENV,
    STOPPED,
    ending_of,
    is_alive,
    killed_driver,
    make_launches,
    name,
    number_in,
    over,
    run_to_end,
    sh,
    until,
)

SHELLS = [[path] for shell in ("dash", "bash", "ksh", "zsh") if (path := shutil.which(shell))] + (
    [[busybox, "sh"]] if (busybox := shutil.which("busybox")) else []
)


def play(shell: list[str], folder: Path, *argv: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "lock").write_text("born\n")
    words = [*shell, "-c", SHIM, SHIM_NAME, str(folder), "256", "/dev/null", str(folder.parent), "nonce", "/dev/null", *argv]
    return subprocess.Popen(words, env=ENV, start_new_session=True, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[-1]).name)
def test_the_shim_is_the_same_under_every_shell(shell: list[str], tmp_path: Path) -> None:
    for number, (script, code) in enumerate([("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)]):
        folder = tmp_path / str(number)
        shim = play(shell, folder, "sh", "-c", script + "\n")
        shim.wait(timeout=30)
        assert (folder / f"exit.{code}").exists()
        assert folders.read_pid(folder) == shim.pid
    play(shell, tmp_path / "missing", "./no-such-program").wait(timeout=30)
    assert (tmp_path / "missing" / "exit.127").exists()
    assert "no-such-program" in (tmp_path / "missing" / "err").read_text()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[-1]).name)
def test_the_shim_outlives_term_and_keeps_the_exit_code_under_every_shell(shell: list[str], tmp_path: Path) -> None:
    async def play_on() -> None:
        folder = tmp_path / "launch"
        shim = play(shell, folder, "sh", "-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done")
        await until(lambda: (folder / "out").exists() and (folder / "out").read_text())
        os.killpg(shim.pid, signal.SIGTERM)
        await until(lambda: shim.poll() is not None)
        assert (folder / "exit.42").exists()

    asyncio.run(play_on())


def test_without_process_descriptors_ends_are_found_by_the_lock(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, sh(tmp_path, "exit 3"), pidfds=False).exit_code == 3


def test_without_process_descriptors_an_agent_is_adopted_and_stopped(tmp_path: Path) -> None:
    async def play_on() -> None:
        await killed_driver(tmp_path, "trap 'exit 9' TERM; echo $$ >at_work; while :; do sleep 0.01; done")
        launches = make_launches(tmp_path, pidfds=False)
        future = ending_of(launches, name())
        launches.stop(name(), STOPPED)
        assert (await over(future)).exit_code == 9

    asyncio.run(play_on())


def test_without_process_descriptors_limits_and_kill_still_work(tmp_path: Path) -> None:
    async def play_on() -> None:
        launches = make_launches(tmp_path, pidfds=False)
        launches.start(sh(tmp_path, "trap '' TERM; echo $$ >at_work; while :; do sleep 0.05; done"))
        ending = await over(ending_of(launches, name(), Watch(timeout_s=0.3, grace_s=0.1)))
        agent = number_in(tmp_path / "at_work")
        assert agent is not None
        assert not is_alive(agent)
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.TIMEOUT
        assert launches.standing(name(), same_boot=True) is Standing.OVER

    asyncio.run(play_on())
