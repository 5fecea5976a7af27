"""The end of a launch costs a look at what the machine made since it began, however many processes there are besides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from agent_orchestrator.engine.kinship import NONCE_VARIABLE
from agent_orchestrator.engine.process.newcomers import COUNT_KEPT, FEW, READ_MAX, Given, ids_given, left_nothing
from tests.unit.process.rig import ENV

CROWD = 150
COUNTING = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.unit.process.rig import name, order, run_to_end
looked = []
sys.addaudithook(lambda event, about: looked.append(about[0]) if event == "open" and str(about[0]).endswith("/environ") else None)
folder, fewest = Path({folder!r}), 1_000_000
for launch in range(1, 51):
    looked.clear()
    assert run_to_end(folder, order(folder, "true", effect=name(launch))).exit_code == 0
    fewest = min(fewest, len(looked))
    if fewest < {crowd}:
        break
print(fewest)
"""


def test_an_end_does_not_look_at_a_crowd_of_other_processes(tmp_path: Path) -> None:
    """Once of many times at least: whoever forks a lot beside the test makes it look at everything."""
    crowd = [subprocess.Popen(["sleep", "300"]) for _ in range(CROWD)]
    try:
        text = COUNTING.format(path=sys.path, folder=str(tmp_path), crowd=CROWD)
        counted = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=300)
        assert int(counted.stdout) < CROWD
    finally:
        for one in crowd:
            one.kill()
            one.wait()


def _started(nonce: str, *, session: bool) -> subprocess.Popen[bytes]:
    """Start a program that carries the nonce and says when it runs."""
    words = [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(300)"]
    program = subprocess.Popen(words, env={**ENV, NONCE_VARIABLE: nonce}, stdout=subprocess.PIPE, start_new_session=session)
    assert program.stdout is not None
    program.stdout.readline()
    return program


@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("nonce", ["ours", "outer:ours", "ours:inner"])
def test_a_process_of_the_launch_is_seen_also_if_a_daemon_made_it_in_its_own_session(nonce: str, session: bool) -> None:
    before = ids_given()
    assert before is not None
    left = _started(nonce, session=session)
    try:
        assert not left_nothing("ours", left.pid, before)
    finally:
        left.kill()
        left.communicate()


def test_what_cannot_be_told_by_the_ids_is_not_certain() -> None:
    before = ids_given()
    assert before is not None
    gone = subprocess.Popen(["true"])
    gone.wait()
    now = ids_given()
    assert now is not None
    assert before.last < gone.pid <= now.last or now.last < before.last
    began_anew = Given(last=now.last + 1, made=now.made)
    many = Given(last=now.last - 1, made=now.made - FEW - 1)
    far = Given(last=now.last - FEW - 1, made=now.made)
    for unsure in (began_anew, many, far):
        assert not left_nothing("ours", now.last, unsure)
    assert not left_nothing("ours", os.getpid(), Given(last=now.last, made=now.made))


def test_processes_are_counted_anew_after_many_more_ids_and_where_the_ids_began_anew() -> None:
    now = ids_given()
    assert now is not None
    kept = ids_given(Given(last=0, made=7, counted=now.last))
    assert kept is not None
    assert kept.last >= now.last
    assert kept.made == 7
    for counted in (now.last - COUNT_KEPT - 1, now.last + 10 * FEW):
        told = ids_given(Given(last=0, made=7, counted=counted))
        assert told is not None
        assert told.made >= now.made


def test_a_crowd_that_came_since_the_launch_began_is_not_counted_to_its_end() -> None:
    """A thousand agents that were started after it live on: it is enough to see that they are too many to look at."""
    asked: list[object] = []

    def note(frame: FrameType, event: str, about: object) -> None:
        if event == "c_call" and about is os.getsid:
            asked.append(about)

    before = ids_given()
    assert before is not None
    crowd = [subprocess.Popen(["sleep", "300"]) for _ in range(2 * READ_MAX)]
    try:
        sys.setprofile(note)
        try:
            assert not left_nothing("ours", crowd[0].pid, before)
        finally:
            sys.setprofile(None)
    finally:
        for one in crowd:
            one.kill()
            one.wait()
    enough = crowd[READ_MAX].pid - before.last
    assert len(asked) <= enough or enough < 0, "the ids began anew"
