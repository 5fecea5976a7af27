"""`orc import`: state files without a journal become runs that stand still, and everything that was changed is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.rig import Rig

SLOPPY: dict[str, Any] = {
    "run_id": "old1",
    "workflow_name": "another",
    "created_at": "$START",
    "steps": {
        "planning": {"status": "COMPLETED", "attempts": 1},
        "coding": {"status": "RUNNING", "attempts": None, "metrics": {"tokens": 12}},
        "gone": {"status": "COMPLETED"},
    },
}


def write_state(rig: Rig, document: object, where: str = ".agents/runs/old1") -> str:
    folder = rig.repo / where
    folder.mkdir(parents=True)
    (folder / "run_state.json").write_text(json.dumps(document))
    return where


def test_a_sloppy_state_file_becomes_a_paused_run_that_goes_on(rig: Rig) -> None:
    path = write_state(rig, SLOPPY)
    taken = rig.orc("import", path, "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"))
    assert taken.code == 0, taken
    for change in (
        "created_at: '$START' is not a time",
        "steps.coding: was RUNNING, is PENDING",
        "steps.coding.attempts: must be a whole number",
        "steps.gone: left out, the workflow has no such step",
        "steps.code_review: new, PENDING",
        "workflow_name: was 'another'",
    ):
        assert change in taken.out
    assert "go on with `orc resume old1`" in taken.out
    assert json.loads((rig.repo / path / "run_state.json.imported").read_text()) == SLOPPY
    assert rig.state("old1")["steps"]["coding"]["status"] == "PENDING"
    assert rig.orc("resume", "old1").code == 0
    assert [len(rig.launches(step)) for step in ("planning", "coding", "code_review")] == [0, 1, 1]


def test_a_state_file_from_elsewhere_is_left_where_it_is(rig: Rig) -> None:
    (rig.side / "run_state.json").write_text(json.dumps(SLOPPY))
    taken = rig.ask(
        "import",
        str(rig.side / "run_state.json"),
        "--workflow",
        "workflow.yaml",
        "--wrapper",
        str(rig.side / "wrapper.py"),
        "--json",
    )
    assert (taken.json["run_id"], taken.json["status"], len(taken.json["changed"])) == ("old1", "paused", 6)
    assert (rig.side / "run_state.json").exists()


def test_a_run_that_has_a_journal_is_not_taken_over_again(rig: Rig) -> None:
    done = rig.run("--run-id", "one")
    again = rig.orc(
        "import", f".agents/runs/{done.run}", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")
    )
    assert again.code == 2, again
    assert "Run one exists already (it is completed)" in again.err


def test_a_loop_of_another_tool_becomes_a_paused_loop(rig: Rig) -> None:
    (rig.side / "state.json").write_text('{"task": "fix it", "completion_criteria": "true", "iteration": 3, "status": "running"}')
    taken = rig.orc("import", str(rig.side))
    assert taken.code == 0, taken
    assert "status: was running, is paused" in taken.out
    assert "orc loop resume ralph-fix-it-" in taken.out
    assert rig.orc("import", str(rig.side)).code == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere", "The state file nowhere does not exist"),
        ("workflow.yaml", "is no state file that can be taken over"),
        (".", "There is no state file in"),
        (".agents/runs/old1", "give its file with --workflow"),
    ],
)
def test_what_cannot_be_taken_over_is_said_in_a_sentence(rig: Rig, path: str, says: str) -> None:
    write_state(rig, SLOPPY)
    refused = rig.orc("import", path)
    assert refused.code == 2, refused
    assert says in refused.err


def test_a_state_file_that_is_no_json_is_refused_and_left_alone(rig: Rig) -> None:
    path = write_state(rig, SLOPPY)
    (rig.repo / path / "run_state.json").write_text('{"run_id": "old1", ')
    refused = rig.orc("import", path, "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"))
    assert refused.code == 2, refused
    assert (rig.repo / path / "run_state.json").exists()
