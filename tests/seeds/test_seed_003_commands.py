"""Seed 003: its registry, its legacy file and its layout, on real loops; its command lines are in test_lines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.rig import wait_until


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    return LoopRig(repo)


def test_the_registry_lists_an_active_loop_with_its_state_file(rig: LoopRig) -> None:
    """003:30, 262, 274, 286, 301, with the contract's fields."""
    rig.do("touch done")
    rig.hold()
    running = rig.start_loop("--timeout", "60")
    loop = loop_of(running)
    wait_until(lambda: rig.launches())
    registry = rig.registry()
    assert (registry["version"], registry["max_concurrent_loops"]) == ("2.0.0", 4)
    (entry,) = registry["active_loops"]
    assert list(entry) == [
        *("loop_id", "status", "iteration", "task", "completion_criteria", "started_at", "last_active", "pid", "owner"),
        *("working_directory", "state_file", "max_iterations", "timeout_minutes"),
    ]
    assert (entry["loop_id"], entry["status"], entry["pid"]) == (loop, "running", running.process.pid)
    assert (entry["working_directory"], entry["timeout_minutes"]) == (".", 60)
    assert json.loads((rig.repo / entry["state_file"]).read_text())["loop_id"] == loop
    rig.open("go")
    assert running.end().code == 0


def test_the_legacy_file_is_converted_to_a_state_file_and_kept(rig: LoopRig) -> None:
    """003:378–387."""
    rig.ralph.mkdir(parents=True)
    legacy = rig.ralph / "current-loop.json"
    old = {"loop_id": "ralph-old-work-0badcafe", "task": "old work", "completion_criteria": "make test", "iteration": 2}
    content = json.dumps({**old, "status": "paused", "maxIterations": 9, "history": [{"action": "looked around"}]})
    legacy.write_text(content)
    assert "loop ralph-old-work-0badcafe  paused" in rig.aiwg("ralph-status").out
    assert not (rig.ralph / "loops").exists()
    assert rig.aiwg("ralph-abort", "ralph-old-work-0badcafe").code == 0
    state = rig.state("ralph-old-work-0badcafe")
    assert (state["iteration"], state["status"], state["configuration"]["max_iterations"]) == (2, "aborted", 9)
    assert json.loads(legacy.read_text()) == {**json.loads(content), "status": "aborted"}
    assert (rig.ralph / "current-loop.json.imported").read_text() == content


def test_the_files_lie_where_the_layout_says_and_jq_reads_them(rig: LoopRig) -> None:
    """003:300–312, 314–358: a path of the layout in each, and the fields of the example."""
    rig.do("touch done", 2)
    rig.do("echo $ITERATION > n")
    done = rig.loop(task="fix tests", until="test -f done")
    loop = loop_of(done)
    folder = f".aiwg/ralph/loops/{loop}"
    for line, said in (
        (f"jq -r .status {folder}/state.json", "completed"),
        (f"jq -r .completion_criteria {folder}/state.json", "test -f done"),
        (f"jq -r '.progress.last_completion_check.passed' {folder}/state.json", "true"),
        (f"jq -r '.metrics.total_iterations' {folder}/state.json", "2"),
        (f"jq -r .last_checkpoint {folder}/state.json", f"{folder}/checkpoints/iteration-002.json.gz"),
        (f"gunzip -c {folder}/checkpoints/iteration-001.json.gz | jq -r .loop_id", loop),
        (f"jq -r .loop_id {folder}/analytics/analytics.json", loop),
        ("jq -r '.active_loops | length' .aiwg/ralph/registry.json", "0"),
    ):
        ran = subprocess.run(["sh", "-c", line], cwd=rig.repo, capture_output=True, text=True, timeout=20, check=False)
        assert (ran.returncode, ran.stdout.strip()) == (0, said), line
