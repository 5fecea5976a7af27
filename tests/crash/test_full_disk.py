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
from tests.crash.rig import Rig, wait_until
from tests.crash.test_interruptions import LINE

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


def fill(repo: Path) -> Path:
    """Writes until nothing more fits, to the last block."""
    ballast = repo / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"\0" * CHUNK_BYTES)
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017 - the loop ends here and nowhere else
                return ballast


def test_a_full_disk_is_said_and_loses_no_outcome(small_repo: Path, tmp_path: Path) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("full")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("full").exists())
    ballast = fill(small_repo)
    rig.let_go()
    orc.wait_for("is full")
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


def test_an_orchestrator_that_stays_goes_on_by_itself_when_there_is_space_again(small_repo: Path, tmp_path: Path) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("patient")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("patient").exists())
    ballast = fill(small_repo)
    rig.let_go()
    orc.wait_for("is full")
    ballast.unlink()
    assert orc.end() == 0, orc
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
    assert {step["status"] for step in rig.steps("patient").values()} == {"COMPLETED"}
    reports = [Path(step["report_path"]).name for step in rig.steps("patient").values()]
    assert sorted(file.name for file in (rig.state_file("patient").parent / "reports").iterdir()) == reports


def test_a_person_can_stop_the_run_on_a_full_disk_because_a_little_space_was_kept_back(small_repo: Path, tmp_path: Path) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("stopped")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("stopped").exists())
    ballast = fill(small_repo)
    rig.let_go()
    orc.wait_for("is full")
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


@pytest.mark.parametrize("command", [("status",), ("list",), ("resume", "dead"), ("history", "dead")])
def test_a_disk_that_is_full_before_the_store_is_opened_is_never_called_damage(
    small_repo: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    rig = Rig(small_repo, LINE, tmp_path / "side")
    rig.hold("one")
    orc = rig.run("dead")
    wait_until(lambda: rig.log("start", "one") and rig.state_file("dead").exists())
    orc.kill()
    rig.let_go()
    for name in ("orc.db-shm", "reserve"):  # a reboot, or a copied repository, leaves no shared memory
        (small_repo / ".git" / "orc" / name).unlink(missing_ok=True)
    ballast = fill(small_repo)
    looked = rig.start(*command)
    assert looked.end() in (0, 3), looked
    assert "is full" in looked.said, looked
    ballast.unlink()
    assert rig.start("resume", "dead").end() == 0
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
