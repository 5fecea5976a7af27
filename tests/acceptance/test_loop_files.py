"""Folders with loops of older tools, as people have them: looking at them changes nothing, taking them over keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.loop_rig import LoopRig

HISTORY: dict[str, Any] = {
    "id": "ralph-research-2026-01-25",
    "active": True,
    "task": "Execute the plan — übermorgen",
    "completion_criteria": ["test -f done", "true passes"],
    "maxIterations": 50,
    "currentIteration": 8,
    "status": "IN_PROGRESS",
    "startTime": "2026-01-25T12:00:00Z",
    "iterations": [{"number": number, "action": f"step {number}", "result": "went on"} for number in range(1, 9)],
    "learnings": ["mend the mocks first"],
    "filesModified": ["main.rs"],
}
STATE: dict[str, Any] = {
    "loopId": "auth-refactor",
    "task": "Refactor auth",
    "completion": "true",
    "status": "paused",
    "currentIteration": 2,
    "startTimeMs": 1769730300000,
    "autoCommit": True,
}
DONE: dict[str, Any] = {
    "loop_id": "ralph-old-a1b2c3d4",
    "task": "Old",
    "completion": "true",
    "status": "complete",
    "iteration": 4,
    "started_at": "2026-02-02T21:00:00Z",
    "completed_at": "2026-02-02T21:10:00Z",
}
REGISTRY: dict[str, Any] = {
    "version": "2.0.0",
    "updated_at": "2026-02-02T10:30:00Z",
    "active_loops": [
        {"loop_id": "auth-refactor", "task_summary": "Refactor auth", "status": "running", "iteration": 1},
        {"loop_id": "ralph-only-listed-b2c3d4e5", "task_summary": "Only listed", "status": "running", "iteration": 1},
    ],
    "total_completed": 5,
}


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    return LoopRig(repo)


def put(rig: LoopRig, path: str, document: Any) -> Path:
    file = rig.ralph / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document, ensure_ascii=False))
    return file


def put_all(rig: LoopRig) -> None:
    put(rig, "current-loop.json", HISTORY)
    put(rig, "loops/auth-refactor/state.json", STATE)
    put(rig, "loops/auth-refactor/checkpoints/iteration-001.json.gz", "not even gzip")
    put(rig, "loops/broken/state.json", "{broken")
    put(rig, "archive/ralph-old-a1b2c3d4/state.json", DONE)
    put(rig, "registry.json", REGISTRY)


def photograph(folder: Path) -> dict[str, Any]:
    """Every file with its bytes and times."""
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(folder.rglob("*")) if file.is_file()}


LOOKING = (
    *(("loop", "status"), ("loop", "status", "--all"), ("loop", "status", "auth-refactor", "--verbose"), ("loop", "list")),
    *(("loop", "status", "ralph-old-a1b2c3d4", "--json"), ("loop", "list", "--all", "--json"), ("loop", "logs", "auth-refactor")),
    *(
        ("loop", "attach", "auth-refactor"),
        ("loop", "best", "auth-refactor"),
        ("loop", "status", "broken"),
        ("list",),
        ("status",),
    ),
    *(("show", "auth-refactor"), ("doctor",), ("loop", "status", "nobody")),
)


def test_looking_changes_nothing(rig: LoopRig) -> None:
    put_all(rig)
    before = photograph(rig.repo / ".aiwg")
    for arguments in LOOKING:
        assert rig.ask(*arguments).code in (0, 2, 3), arguments
        assert photograph(rig.repo / ".aiwg") == before, arguments
    for words in (("ralph-status",), ("ralph-status", "--all"), ("ralph-status", "-v", "auth-refactor"), ("ralph", "list")):
        rig.aiwg(*words)
        assert photograph(rig.repo / ".aiwg") == before, words
    completing = {"_ORC_COMPLETE": "bash_complete", "COMP_WORDS": "orc loop status ", "COMP_CWORD": "3"}
    assert rig.orc(env=completing).code == 0
    assert photograph(rig.repo / ".aiwg") == before


def test_loops_in_files_are_shown_as_they_would_be_taken_over(rig: LoopRig) -> None:
    put(rig, "current-loop.json", HISTORY)
    shown = rig.aiwg("ralph-status")
    assert "  paused  8/50 iterations" in shown.out, shown
    assert "only in .aiwg/ralph/current-loop.json" in shown.out
    assert "iteration 8: step 8: went on" in shown.out
    assert "iteration 1: step 1" in rig.aiwg("ralph-status", "--verbose", "ralph-research-2026-01-25").out
    put_all(rig)
    listed = rig.ask("loop", "list", "--all", "--json")
    found = {one["task"]: (one["status"], one["iteration"], one["only_in"]) for one in listed.json["loops"]}
    assert found == {
        "Refactor auth": ("paused", 2, ".aiwg/ralph/loops/auth-refactor/state.json"),
        "Old": ("completed", 4, ".aiwg/ralph/archive/ralph-old-a1b2c3d4/state.json"),
        "Only listed": ("paused", 1, ".aiwg/ralph/registry.json"),
        "Execute the plan — übermorgen": ("paused", 8, ".aiwg/ralph/current-loop.json"),
    }
    assert "loops/broken/state.json is not a valid loop state" in listed.err
    assert "Several loops are in files, name one" in rig.ask("loop", "status").err


def test_taking_over_keeps_the_original_and_says_what_became_of_each_field(rig: LoopRig) -> None:
    legacy = put(rig, "current-loop.json", HISTORY)
    before = legacy.read_bytes()
    taken = rig.ask("import", ".aiwg/ralph/current-loop.json", "--json")
    assert taken.code == 0, taken
    loop = taken.json["run_id"]
    assert (rig.ralph / "current-loop.json.imported").read_bytes() == before
    assert "currentIteration as iteration" in taken.json["taken"]
    assert "status: 'IN_PROGRESS' is taken as 'running'" in taken.json["changed"]
    assert "completion_criteria: run as `( test -f done ) && ( true )`" in taken.json["changed"]
    assert taken.json["left_out"] == ["filesModified"]
    assert rig.state(loop)["started_at"] == "2026-01-25T12:00:00Z"
    kept = json.loads(legacy.read_text())
    assert kept == {**HISTORY, "status": "paused"}
    rig.do("touch done")
    done = rig.aiwg("ralph-resume", "ralph-research-2026-01-25", "--agent-command", str(rig.agent))
    assert done.code == 0, done
    assert "- iteration 8: step 8: went on" in rig.prompt(loop, 9)
    assert "mend the mocks first" in rig.prompt(loop, 9)
    kept = json.loads(legacy.read_text())
    assert kept == {**HISTORY, "status": "completed", "currentIteration": 9, "active": False}
    assert (rig.ralph / "current-loop.json.imported").read_bytes() == before


def test_a_legacy_file_of_a_loop_that_is_done_stays_as_it_is_when_it_is_taken_over(rig: LoopRig) -> None:
    legacy = put(rig, "current-loop.json", {"task": "x", "completion": "y", "status": "SUCCESS", "currentIteration": 3})
    before = photograph(rig.ralph)[str(legacy)]
    assert rig.ask("import", str(legacy)).code == 0
    assert photograph(rig.ralph)[str(legacy)] == before
    rig.do("touch done")
    assert rig.loop().code == 0
    assert photograph(rig.ralph)[str(legacy)] == before


def test_all_loops_of_a_registry_are_taken_over_and_none_is_dropped(rig: LoopRig) -> None:
    put_all(rig)
    before = photograph(rig.repo / ".aiwg")
    taken = rig.ask("import", ".aiwg/ralph", "--json")
    assert taken.code == 0, taken
    assert len(taken.json["runs"]) == 4
    assert any("loops/broken/state.json is not a valid loop state" in note for note in taken.json["changed"])
    assert any("checkpoints: iteration-001.json.gz stay where they are" in note for note in taken.json["changed"])
    kept = {content for content, _ in photograph(rig.repo / ".aiwg").values()}
    assert [path for path, (content, _) in before.items() if content not in kept] == []
    assert {entry["task"] for entry in rig.registry()["active_loops"]} == {
        *("Refactor auth", "Only listed", "Execute the plan — übermorgen"),
    }
    state = rig.state("ralph-old-a1b2c3d4")
    assert (state["completed_at"], state["metrics"]["total_duration_seconds"]) == ("2026-02-02T21:10:00Z", 600)
    assert state["metrics"]["average_iteration_time_seconds"] == 150
    assert "exists already" in rig.ask("import", ".aiwg/ralph").err


def test_a_new_loop_leaves_files_of_others_alone(rig: LoopRig) -> None:
    put_all(rig)
    before = photograph(rig.repo / ".aiwg")
    rig.do("touch done")
    assert rig.loop().code == 0
    after = photograph(rig.repo / ".aiwg")
    changed = [path for path, had in before.items() if after.get(path) != had]
    assert changed == [str(rig.ralph / "registry.json")]
    assert (rig.ralph / "registry.json.imported").read_text() == json.dumps(REGISTRY, ensure_ascii=False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "current-loop.json is not a valid loop state: it is empty"),
        ("{broken", "current-loop.json is not a valid loop state: JSON is malformed"),
        ("[1, 2]", "current-loop.json is not a valid loop state: it is not a JSON object"),
        ('{"name": "left-pad", "version": "1.0"}', "no task is in it (it has name, version)"),
        ('{"active": false, "task": null, "status": "IDLE"}', "No loop is active"),
    ],
)
def test_a_file_that_is_no_loop_is_named_with_what_is_wrong_and_left_alone(rig: LoopRig, content: str, said: str) -> None:
    file = put(rig, "current-loop.json", content)
    for arguments in (("status",), ("resume", "--agent-command", "true"), ("pause",)):
        refused = rig.ask("loop", *arguments)
        assert (refused.code, said in refused.err) == (2, True), refused
    assert rig.ask("loop", "list").code == 0
    assert file.read_text() == content
    assert [one.name for one in rig.ralph.iterdir()] == ["current-loop.json"]


def test_a_free_loop_id_is_a_name_for_every_command(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    started = rig.aiwg(
        *("ralph", "Fix tests", "--completion", "test -f done", "--loop-id", "my-test-fix", "--no-commit"),
        *("--max-iterations", "1", "--agent-command", str(rig.agent), "--env", "A=1", "--env", "B=2"),
    )
    assert started.code == 5, started
    assert "  failed  1/1 iterations" in rig.aiwg("ralph-status", "--loop-id", "my-test-fix").out
    again = rig.aiwg("ralph", "Fix tests", "--completion", "true", "--loop-id", "my-test-fix", "--agent-command", "true")
    assert (again.code, "ralph-my-test-fix-" in again.err) == (2, True), again
