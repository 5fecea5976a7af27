"""Links that an agent plants in the middle of a path of ours: nothing is read, written or deleted through one, and it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.rig import HUMAN, Rig

ONE = """
name: one
steps:
  - {id: code, agent: coder, prompt: prompt.md}
"""
REPLACE = """#!/bin/sh
# Does its work, and puts a link in the place of a folder on the way to its report.
echo '{"status": "COMPLETED"}' >"$REPORT_PATH"
echo "what a launch behind a link says"
folder=$(cd "${REPORT_PATH%/*}/$1" && pwd)
mv "$folder" "$folder.moved" && ln -s "$folder.moved" "$folder"
"""


@pytest.mark.parametrize("level", [".", "..", "../.."], ids=["its launch's folder", "the run's folder", "that of all launches"])
def test_a_launch_behind_a_link_is_lost_whatever_its_report_and_its_marks_say(rig: Rig, level: str) -> None:
    rig.workflow(ONE)
    (rig.side / "replace.sh").write_text(REPLACE)
    agent = ("--agent-command", f"sh {rig.side}/replace.sh {level}", "--max-attempts", "1")
    failed = rig.orc("run", "--workflow", "workflow.yaml", "--run-id", "linked", *agent)
    assert (failed.code, "is a link that somebody planted" in failed.out) == (1, True), failed
    assert rig.state("linked")["steps"]["code"]["status"] == "FAILED"
    moved = [file for folder in (rig.repo / ".git" / "orc").glob("launches*") for file in folder.resolve().rglob("report.json")]
    moved = sorted(set(moved))
    assert [json.loads(file.read_text())["status"] for file in moved] == ["COMPLETED"], "it lies there, and was not read"
    assert "behind a link" not in rig.ask("logs", "linked", "code").out


def move_behind_link(folder: Path) -> Path:
    """Move a folder away and put a link to it in its place."""
    moved = folder.with_name(f"{folder.name}.moved")
    folder.rename(moved)
    folder.symlink_to(moved)
    return moved


def test_an_answer_behind_a_link_is_no_answer_and_is_said(rig: Rig) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "asks", "--no-wait").code == 4
    moved = move_behind_link(rig.repo / ".agents" / "runs" / "asks" / "manual_inputs")
    (moved / "asks__approval.json").write_text('{"approved": true}')
    waits = rig.orc("resume", "asks", "--no-wait")
    assert (waits.code, "it leads through a link" in waits.out + waits.err) == (4, True), waits
    assert (moved / "asks__approval.json").exists()
    assert rig.ask("approve", "asks").code == 0
    assert rig.orc("resume", "asks").code == 0


def test_state_files_behind_a_link_are_neither_adopted_nor_written_and_the_run_goes_on(rig: Rig) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "asks", "--no-wait").code == 4
    moved = move_behind_link(rig.repo / ".agents" / "runs" / "asks")
    state = json.loads((moved / "run_state.json").read_text())
    state["steps"]["coding"]["artifacts"] = ["planted.md"]
    forged = json.dumps(state)
    (moved / "run_state.json").write_text(forged)
    assert rig.ask("approve", "asks").code == 0
    done = rig.orc("resume", "asks")
    assert (done.code, "is a link, and state files are not read through one" in done.out + done.err) == (0, True), done
    assert (moved / "run_state.json").read_text() == forged
    assert "planted.md" not in rig.ask("history", "asks").out


@pytest.mark.parametrize("place", [".agents/runs", ".git/orc/launches"])
def test_nothing_is_deleted_behind_a_link(rig: Rig, place: str) -> None:
    rig.workflow(ONE)
    assert rig.run("--run-id", "done").code == 0
    moved = move_behind_link(rig.repo / place)
    kept = sorted(moved.rglob("*"))
    pruned = rig.ask("prune", "--older-than", "0", "--yes")
    assert (pruned.out.startswith("kept"), "cannot be deleted: it leads through a link" in pruned.out) == (True, True), pruned
    assert sorted(moved.rglob("*")) == kept
