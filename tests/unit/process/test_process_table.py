"""The process table: what a process carries is read until it has settled, and once more before anybody acts on it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from agent_orchestrator.engine.kinship import NONCE_VARIABLE
from agent_orchestrator.engine.process.identity import AHEAD_PASSES, AHEAD_S, SETTLED_S, ProcessTable, Sweep
from tests.unit.process.rig import ENV, Turns

CROWD = 100
WAITING = ("sh", "-c", "echo; read word")
COUNTING = """
import sys
from agent_orchestrator.engine.process.identity import SETTLED_S, ProcessTable
looked, now_s = [], [0.0]
sys.addaudithook(lambda event, about: looked.append(about[0]) if event == "open" and str(about[0]).endswith("/environ") else None)
table = ProcessTable(lambda: now_s[0])
counts = []
for _ in range(8):
    looked.clear()
    listed = {pid: nonces for pid, nonces in table.list_all()}
    counts.append(sum(f"/proc/{pid}/environ" in looked for pid in map(int, sys.argv[1:])))
    now_s[0] += SETTLED_S
print(*counts)
"""
AHEAD = """
import sys
from agent_orchestrator.engine.process.identity import Sweep
from tests.unit.process.rig import Turns
looked, found, turns = [], [], Turns()
sys.addaudithook(lambda event, about: looked.append(about[0]) if event == "open" and str(about[0]).endswith("/environ") else None)
counts = []
for _ in range(8):
    sweep = Sweep(turns)
    sweep.expect()
    turns.play()
    looked.clear()
    sweep.ask("ours", found.append)
    turns.play()
    counts.append(sum(f"/proc/{pid}/environ" in looked for pid in map(int, sys.argv[1:])))
print(min(counts), *found[0])
"""
BECOMING = """
import os, sys
print(flush=True)
sys.stdin.readline()
os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(300)"], {"ORC_LAUNCH": "late"})
"""


@contextmanager
def running(*words: str, nonce: str = "", count: int = 1) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs that run until the end of the block; each has said that it runs."""
    env = {**ENV, **({NONCE_VARIABLE: nonce} if nonce else {})}
    started = [subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline()
        yield started
    finally:
        for one in started:
            one.send_signal(signal.SIGKILL)
            one.communicate()


def carried(table: ProcessTable, pid: int) -> list[str]:
    return dict(table.list_all())[pid]


def test_the_environment_of_a_process_that_has_settled_is_not_read_again() -> None:
    with running(*WAITING, count=CROWD) as crowd:
        words = [sys.executable, "-c", COUNTING, *(str(one.pid) for one in crowd)]
        counted = subprocess.run(words, env={**ENV, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, check=True)
    first, second, *later = (int(count) for count in counted.stdout.split())
    assert (first, second) == (CROWD, CROWD)
    assert min(later) == 0  # Of several: a kernel that is short of memory gives folders in /proc new numbers.


def test_after_a_start_environments_are_read_before_anybody_asks_whose_processes_they_are() -> None:
    with running(*WAITING, count=CROWD) as crowd, running(*WAITING, nonce="ours") as (ours,):
        words = [sys.executable, "-c", AHEAD, *(str(one.pid) for one in crowd)]
        counted = subprocess.run(words, env={**ENV, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, check=True)
    assert [int(word) for word in counted.stdout.split()] == [0, ours.pid]


def test_a_question_in_the_middle_of_a_look_ahead_is_answered_by_a_pass_that_begins_after_it() -> None:
    turns, found = Turns(), list[list[int]]()
    sweep = Sweep(cast(asyncio.AbstractEventLoop, turns))
    sweep.expect()
    turns.play(1)  # It is under way.
    with running(*WAITING, nonce="ours") as (ours,):
        sweep.ask("ours", found.append)
        turns.play(1)
        assert not found
        turns.play()
    assert found == [[ours.pid]]


def test_a_start_is_followed_by_so_many_looks_ahead_and_the_end_of_the_watch_by_none() -> None:
    turns = Turns()
    sweep = Sweep(cast(asyncio.AbstractEventLoop, turns))
    sweep.expect()
    turns.play()
    assert turns.time() == AHEAD_S * AHEAD_PASSES
    sweep.expect()
    sweep.close()
    turns.play()
    assert turns.time() == AHEAD_S * AHEAD_PASSES


def test_a_process_that_becomes_one_of_a_launch_right_after_it_was_made_is_seen() -> None:
    now_s = 0.0
    table = ProcessTable(lambda: now_s)
    with running(sys.executable, "-S", "-c", BECOMING) as (one,):
        assert carried(table, one.pid) == []
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdin.write(b"\n")
        one.stdin.flush()
        one.stdout.readline()
        now_s = SETTLED_S / 2
        assert carried(table, one.pid) == ["late"]
        now_s = SETTLED_S * 2
        assert carried(table, one.pid) == carried(table, one.pid) == ["late"]


def test_another_process_with_the_same_id_is_another_process() -> None:
    """Known by the number of its folder, which the kernel gives out anew: it is forged here in what the table remembers."""
    now_s = 0.0
    table = ProcessTable(lambda: now_s)
    with running(*WAITING, nonce="ours") as (one,):
        inodes = {entry.name: entry.inode() for entry in os.scandir("/proc")}
        table._known = {str(one.pid): (inodes[str(one.pid)] + 1, -10 * SETTLED_S, ["another"])}
        now_s = SETTLED_S
        assert carried(table, one.pid) == ["ours"]
