"""`orc swarm stop`: one bead or a run, whoever drives it, and nothing beside it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.rig import is_alive, wait_until
from tests.acceptance.swarm_rig import SwarmRig


@pytest.fixture
def rig(repo: Path) -> SwarmRig:
    return SwarmRig(repo)


def test_a_bead_of_a_run_is_stopped_and_the_others_go_on(rig: SwarmRig) -> None:
    rig.beads({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "x"})
    rig.hold("a")
    running = rig.start(*rig.run_arguments("--max-agents", "2", "--force"))
    wait_until(lambda: len(rig.tries()) == 2)
    stopped = rig.orc("swarm", "stop", "a", "--reason", "wrong branch")
    assert stopped.code == 0, stopped
    assert running.end().code == 1
    run = rig.record("runs", "a")
    assert (run["status"], run["failure_reason"]) == ("failed", "aborted")
    assert rig.record("results", "a")["reason"] == "stopped: wrong branch"
    assert rig.record("runs", "b")["status"] == "done"


def test_stop_reaches_an_agent_that_nobody_drives_any_more(rig: SwarmRig) -> None:
    rig.beads({"id": "a", "prompt": "x"})
    rig.hold("a")
    running = rig.start(*rig.run_arguments("--max-agents", "2"))
    wait_until(lambda: rig.tries())
    pid = int(rig.launches()[0].split()[3])
    running.signal(signal.SIGKILL)
    running.process.wait()
    assert is_alive(pid)
    stopped = rig.orc("swarm", "stop", "a")
    assert stopped.code == 0, stopped
    wait_until(lambda: not is_alive(pid))
    assert rig.record("runs", "a")["failure_reason"] == "aborted"


def test_in_a_run_that_nobody_drives_only_what_is_asked_for_is_done(rig: SwarmRig) -> None:
    rig.commit()
    rig.beads(*({"id": name, "prompt": "x"} for name in "abc"))
    rig.hold("b")
    running = rig.start(*rig.run_arguments("--max-agents", "1", "--branch", "w"))
    wait_until(lambda: [bead for bead, _ in rig.tries()] == ["a", "b"])
    running.signal(signal.SIGKILL)
    running.process.wait()
    merged = rig.orc("swarm", "merge", "a")
    assert (merged.code, "has not ended, and nothing is running it; continue with `orc resume" in merged.err) == (2, True)
    stopped = rig.orc("swarm", "stop", "b")
    assert (stopped.code, "Nothing is running it now; continue with: orc resume" in stopped.out) == (0, True), stopped
    assert rig.record("runs", "b")["failure_reason"] == "aborted"
    assert [bead for bead, _ in rig.tries()] == ["a", "b"], "no other bead was begun"
    assert rig.orc("resume").code == 1
    assert [bead for bead, _ in rig.tries()] == ["a", "b", "c"]
    assert rig.orc("swarm", "merge", "a").code == 0
