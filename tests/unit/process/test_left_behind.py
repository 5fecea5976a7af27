"""Processes that agents leave behind. What carries the mark of the launch is stopped with it; what took it off is found in the
launch's cgroup, or, where it has none, lives on and is still known to come from there."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import agent_orchestrator
from agent_orchestrator.engine.launches import Watch
from agent_orchestrator.engine.process.cgroups import list_members, make_cgroup, own_cgroup, remove_cgroup, remove_left
from agent_orchestrator.engine.process.ends import end_launches, list_living
from agent_orchestrator.engine.process.folder import is_locked, read_birth
from tests.unit.process.rig import (
    PATIENCE_S,
    STOPPED,
    ending_of,
    is_alive,
    make_launches,
    name,
    number_in,
    over,
    run_to_end,
    sh,
    until,
)

SOURCE = Path(agent_orchestrator.__file__).parents[1]
LEFT_BEHIND = """
import os, sys, time
from pathlib import Path
folder, said = Path(sys.argv[1]), Path(sys.argv[2])
os.closerange(3, 256)
os.write(os.open(str(said) + ".begun", os.O_WRONLY | os.O_CREAT), b"x")
os.closerange(3, 256)
limit = time.monotonic() + 60
while time.monotonic() < limit and not said.with_suffix(".go").exists():
    time.sleep(0.01)
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.sender import find_sender
said.with_suffix(".new").write_text(str(find_sender(folder, {}, Surface.CLI).launch))
said.with_suffix(".new").rename(said)
"""


needs_cgroups = pytest.mark.skipif(not own_cgroup(), reason="no cgroup can be made here")


def test_a_process_without_marks_that_an_agent_left_behind_is_known_by_its_session(tmp_path: Path) -> None:
    program, said = tmp_path / "left.py", tmp_path / "said"
    program.write_text(LEFT_BEHIND)
    words = shlex.join(["env", "-i", f"PYTHONPATH={SOURCE}", sys.executable, str(program), str(tmp_path), str(said)])
    wait = f"until [ -e {shlex.quote(str(said))}.begun ]; do sleep 0.01; done"
    ending = run_to_end(tmp_path, sh(tmp_path, f"{words} >/dev/null 2>&1 & {wait}; exit 0"), cgroups=False)
    assert ending.exit_code == 0
    said.with_suffix(".go").touch()
    deadline = time.monotonic() + PATIENCE_S
    while not said.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert said.read_text() == name()


LEAVES = "import os, time; os.setsid(); os.closerange(3, 256); print(os.getpid(), flush=True); time.sleep(600)"
UNMARKED = f"env -i {sys.executable} -c '{LEAVES}' &"
"""Leaves session, group, mark and lock behind."""


def wait_for_end(child: int) -> None:
    """Wait for a process that is out of its cgroup a moment before it is gone."""
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_there(cgroup: str) -> bool:
    return Path(cgroup).is_dir()


@needs_cgroups
def test_a_process_without_marks_is_found_in_the_cgroup_of_its_launch_and_ended(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, f"{UNMARKED} wait"))
        folder = launches.directory(name())
        birth = read_birth(folder)
        assert birth is not None
        assert is_there(birth.cgroup)
        future = ending_of(launches, name(), Watch(grace_s=0.2))
        await until(lambda: number_in(folder / "out"))
        child = number_in(folder / "out")
        assert child is not None
        launches.stop(name(), STOPPED)
        await over(future)
        await until(lambda: not is_alive(child))
        assert not is_there(birth.cgroup)

    asyncio.run(play())


@needs_cgroups
def test_a_process_without_any_mark_is_known_by_its_cgroup_to_come_from_the_launch(tmp_path: Path) -> None:
    program, said = tmp_path / "left.py", tmp_path / "said"
    program.write_text(LEFT_BEHIND.replace("os.closerange", "os.setsid(); os.closerange", 1))
    said.with_suffix(".go").touch()
    words = shlex.join(["env", "-i", f"PYTHONPATH={SOURCE}", sys.executable, str(program), str(tmp_path), str(said)])
    orphan = f"({words} >/dev/null 2>&1 &); until [ -e {shlex.quote(str(said))} ]; do sleep 0.01; done"
    assert run_to_end(tmp_path, sh(tmp_path, orphan)).exit_code == 0
    assert said.read_text() == name()


@needs_cgroups
def test_the_end_of_an_agent_ends_what_it_left_without_a_mark(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, f"{UNMARKED} sleep 1; exit 0"))
    assert ending.exit_code == 0
    child = number_in(ending.out)
    assert child is not None
    wait_for_end(child)
    birth = read_birth(ending.out.parent)
    assert birth is not None
    assert not Path(birth.cgroup).exists()


@needs_cgroups
def test_whoever_looks_after_a_host_ends_what_has_no_mark(tmp_path: Path) -> None:
    launches = make_launches(tmp_path)
    launches.start(sh(tmp_path, f"{UNMARKED} sleep 600"))
    folder = launches.directory(name())
    deadline = time.monotonic() + PATIENCE_S
    while (child := number_in(folder / "out")) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child is not None
    end_launches([folder.parent], 0.2)
    assert (is_locked(folder), list_living([folder.parent])) == (False, [])
    wait_for_end(child)
    launches.close()


@needs_cgroups
def test_cgroups_that_nobody_came_back_for_are_removed_unless_something_lives_in_them() -> None:
    empty, busy = make_cgroup("empty"), make_cgroup("busy")
    with subprocess.Popen(["sleep", "600"]) as living:
        try:
            Path(busy, "cgroup.procs").write_text(str(living.pid))
            remove_left(own_cgroup())
            assert (is_there(empty), is_there(busy)) == (True, True), "they may be of a launch that is just starting"
            remove_left(own_cgroup(), older_than_s=-1.0)
            assert (is_there(empty), is_there(busy)) == (False, True)
        finally:
            living.kill()
            living.wait()
            remove_cgroup(busy, "busy")
    assert not is_there(busy)


@needs_cgroups
def test_no_cgroup_of_another_name_is_looked_into_or_removed() -> None:
    mine = make_cgroup("0123")
    try:
        assert list_members(own_cgroup(), "0123") == []
        assert list_members(mine, "another") == []
        remove_cgroup(mine, "another")
        assert Path(mine).is_dir()
    finally:
        remove_cgroup(mine, "0123")
    assert not Path(mine).exists()
