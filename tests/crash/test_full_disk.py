"""A disk that is really full: a small file system is mounted as the repository, filled, and freed again."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.engine.process.folder import is_locked
from tests.crash.rig import Rig, wait_until
from tests.crash.test_interruptions import LINE
from tests.stores import OWN_STORE

SIZE = "12m"
CHUNK_BYTES = 4096


@pytest.fixture
def small_repo(tmp_path: Path) -> Iterator[Path]:
    """A repository on a file system of its own."""
    home = tmp_path / "small"
    home.mkdir()
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(home)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("mounting a small file system needs root and the right to mount")
    try:
        for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "First"]):
            subprocess.run(["git", *command], cwd=home, check=True)
        yield home
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=True)


STRIKES = pytest.mark.parametrize(
    ("folder", "says"),
    [
        pytest.param(".", "one has to wait, the machine is short of something: No space left on device", id="tree"),
        pytest.param(".git", "is full; nothing was lost", id="journal", marks=OWN_STORE),
    ],
)
"""The first write that fails when an agent ends: of its tree, which has the ballast as a new file, or, with the ballast outside
the tree, of the journal."""


def fill(folder: Path) -> Path:
    """Writes until nothing more fits, to the last block, what git cannot make smaller."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(os.urandom(CHUNK_BYTES))
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017 - the loop ends here and nowhere else
                return ballast


@STRIKES
def test_a_full_disk_is_said_and_loses_no_outcome(small_repo: Path, tmp_path: Path, folder: str, says: str) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("full")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("full").exists())
    ballast = fill(small_repo / folder)
    rig.let_go()
    orc.wait_for(says)
    assert rig.starts() == {("one", "0"): 1}
    orc.kill()
    ballast.unlink()
    resumed = rig.start("resume", "full")
    assert resumed.end() == 0, resumed
    state, _ = rig.fold("full")
    assert state.lifecycle.stop is StopReason.COMPLETED
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
    assert rig.steps("full")["one"]["attempts"] == 1
    assert (small_repo / rig.steps("full")["one"]["report_path"]).is_file()


@STRIKES
def test_an_orchestrator_that_stays_goes_on_by_itself_when_there_is_space_again(
    small_repo: Path, tmp_path: Path, folder: str, says: str
) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("patient")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("patient").exists())
    ballast = fill(small_repo / folder)
    rig.let_go()
    orc.wait_for(says)
    ballast.unlink()
    assert orc.end() == 0, orc
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
    assert {step["status"] for step in rig.steps("patient").values()} == {"COMPLETED"}
    reports = [Path(step["report_path"]).name for step in rig.steps("patient").values()]
    assert sorted(file.name for file in (rig.state_file("patient").parent / "reports").iterdir()) == reports


@OWN_STORE
@STRIKES
def test_a_person_can_stop_the_run_on_a_full_disk_because_a_little_space_was_kept_back(
    small_repo: Path, tmp_path: Path, folder: str, says: str
) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("stopped")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("stopped").exists())
    ballast = fill(small_repo / folder)
    rig.let_go()
    orc.wait_for(says)
    orc.signal(signal.SIGINT)
    assert orc.end() == 130, orc
    state, _ = rig.fold("stopped")
    assert state.lifecycle.phase is Phase.PAUSED
    assert rig.steps("stopped")["one"]["status"] == "COMPLETED", "and what the agent did is not lost"
    ballast.unlink()
    assert rig.start("resume", "stopped").end() == 0
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


def test_taking_a_run_up_on_a_full_disk_fails_with_a_sentence_and_harms_nothing(small_repo: Path, tmp_path: Path) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("late")
    wait_until(lambda: rig.log("start", "one"))
    orc.kill()
    ballast = fill(small_repo)
    resumed = rig.start("resume", "late")
    wait_until(lambda: "is full" in resumed.said or "No space left" in resumed.said or resumed.ended)
    assert "Traceback" not in resumed.said, resumed
    resumed.kill()
    ballast.unlink()
    rig.let_go()
    again = rig.start("resume", "late")
    assert again.end() == 0, again
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


def dead_run(repo: Path, side: Path) -> Rig:
    """Leaves a run whose orchestrator was killed, as after a reboot: there is a log, and no shared memory and no reserve."""
    rig = Rig(repo, LINE, side)
    rig.hold("one")
    orc = rig.run("dead")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("dead").exists())
    orc.kill()
    rig.let_go()
    for name in ("orc.db-shm", "reserve"):
        (repo / ".git" / "orc" / name).unlink(missing_ok=True)
    assert (repo / ".git" / "orc" / "orc.db-wal").stat().st_size > 0
    return rig


LOOKS = [
    (("status",), "dead"),
    (("list",), "dead"),
    (("show", "dead"), "one"),
    (("history", "dead"), "resumed by"),
    (("logs", "dead"), ""),
]


@OWN_STORE
@pytest.mark.parametrize(("command", "shows"), LOOKS)
def test_on_a_full_disk_runs_can_be_looked_at(small_repo: Path, tmp_path: Path, command: tuple[str, ...], shows: str) -> None:
    rig = dead_run(small_repo, tmp_path / "side")
    ballast = fill(small_repo)
    looked = rig.start(*command)
    assert looked.end() == 0, looked
    assert "is full" in looked.said, looked
    assert shows in looked.said, looked
    assert "damaged" not in looked.said, looked
    ballast.unlink()
    assert rig.start("resume", "dead").end() == 0
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


@OWN_STORE
def test_on_a_full_disk_what_must_be_written_is_refused_as_that_and_never_called_damage(small_repo: Path, tmp_path: Path) -> None:
    rig = dead_run(small_repo, tmp_path / "side")
    ballast = fill(small_repo)
    refused = rig.start("resume", "dead")
    assert refused.end() == 3, refused
    assert "is full" in refused.said, refused
    assert "damaged" not in refused.said, refused
    assert "Traceback" not in refused.said, refused
    ballast.unlink()
    assert rig.start("resume", "dead").end() == 0
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


@OWN_STORE
def test_on_a_read_only_file_system_runs_can_be_looked_at(small_repo: Path, tmp_path: Path) -> None:
    rig = dead_run(small_repo, tmp_path / "side")
    wait_until(lambda: rig.log("end", "one"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_repo)], check=True)
    shown = rig.start("show", "dead")
    assert shown.end() == 0, shown
    assert "mounted read-only" in shown.said, shown
    resumed = rig.start("resume", "dead")
    assert resumed.end() == 3, resumed
    assert "mounted read-only" in resumed.said, resumed
    subprocess.run(["mount", "-o", "remount,rw", str(small_repo)], check=True)
    assert rig.start("resume", "dead").end() == 0
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


@OWN_STORE
@pytest.mark.parametrize("command", [("abort", "dead"), ("pause", "dead", "--now")])
def test_on_a_full_disk_an_agent_that_nobody_drives_is_stopped_and_that_is_said(
    small_repo: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("dead")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("dead").exists())
    orc.kill()
    for name in ("orc.db-shm", "reserve"):
        (small_repo / ".git" / "orc" / name).unlink(missing_ok=True)
    launches = [lock.parent for lock in (small_repo / ".git" / "orc" / "launches" / "dead").glob("*/lock")]
    assert any(is_locked(launch) for launch in launches)
    ballast = fill(small_repo)
    refused = rig.start(*command)
    assert refused.end() == 3, refused
    assert "could not be journaled" in refused.said, refused
    wait_until(lambda: not any(is_locked(launch) for launch in launches))
    ballast.unlink()
    again = rig.start(*command)
    assert again.end() == 0, again
    state, _ = rig.fold("dead")
    assert state.lifecycle.phase is (Phase.PAUSED if "--now" in command else Phase.ENDED)
    assert rig.starts() == {("one", "0"): 1}
