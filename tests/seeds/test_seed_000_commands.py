"""Each command line and each jq line of seed 000, verbatim, on a real run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.rig import Result, Rig

RESUME = """python -m agent_orchestrator.cli run \\
  --repo /path/to/repo \\
  --workflow workflow.yaml \\
  --wrapper wrapper.py \\
  --start-at-step coding"""

VIEW = "cat .agents/runs/<run_id>/run_state.json | jq ."
STEP = "cat .agents/runs/<run_id>/run_state.json | jq '.steps.coding'"
FAILED = """cat .agents/runs/<run_id>/run_state.json | jq '.steps | to_entries | map(select(.value.status == "FAILED"))'"""
ITERATIONS = (
    "cat .agents/runs/<run_id>/run_state.json | jq '.steps | to_entries | map({key: .key, iterations: .value.iteration_count})'"
)
BACKUP = "cp run_state.json run_state.json.bak"


@pytest.fixture
def rig(repo: Path) -> Rig:
    """A repository whose workflow, wrapper and prompts are named as in the seed."""
    made = Rig(repo)
    for name in ("wrapper.py", "parts.json"):
        (repo / name).symlink_to(made.side / name)
    return made


def shell(rig: Rig, line: str, cwd: Path | None = None) -> Result:
    """Runs a line of the seed in a shell whose `python` is ours; only the placeholders are filled in."""
    (rig.side / "bin").mkdir(exist_ok=True)
    python = rig.side / "bin" / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nexec {json.dumps(sys.executable)} "$@"\n')
        python.chmod(0o755)
    environ = rig.environment() | {"PATH": f"{rig.side / 'bin'}:{os.environ['PATH']}"}
    filled = line.replace("/path/to/repo", str(rig.repo))
    done = subprocess.run(["sh", "-c", filled], cwd=cwd or rig.repo, env=environ, capture_output=True, text=True, check=False)
    return Result((line,), done.returncode, done.stdout, done.stderr)


def test_a_failed_workflow_resumes_from_a_specific_step(rig: Rig) -> None:
    """000:366–371; what the orchestrator does then: 374–378."""
    rig.play({"coding": {"exit": 1, "report": None}})
    first = shell(rig, RESUME.replace(" \\\n  --start-at-step coding", " --max-attempts 1"))
    assert first.code == 1, first
    before = rig.state(first.run)
    assert before["steps"]["coding"]["status"] == "FAILED"
    rig.play({})
    again = shell(rig, RESUME)
    assert again.code == 0, again
    assert again.run == first.run, "it loads the most recent run state (000:375)"
    after = rig.state(first.run)
    assert after["steps"]["planning"] == before["steps"]["planning"], "completed upstream steps are preserved (000:377)"
    assert {step["status"] for step in after["steps"].values()} == {"COMPLETED"}
    assert len(rig.launches("planning")) == 1


def test_every_jq_line_answers_on_a_real_run(rig: Rig) -> None:
    """000:385–395."""
    rig.play({"code_review@0": {"report": {"gate_failure": True}}, "code_review": {"exit": 1, "report": None}})
    failed = rig.run("--max-attempts", "1")
    assert failed.code == 1, failed

    def jq(line: str) -> object:
        said = shell(rig, line.replace("<run_id>", failed.run))
        assert (said.code, said.err) == (0, ""), said
        return said.json

    state = rig.state(failed.run)
    assert jq(VIEW) == state
    assert jq(STEP) == state["steps"]["coding"]
    assert jq(FAILED) == [{"key": "code_review", "value": state["steps"]["code_review"]}]
    assert jq(ITERATIONS) == [
        {"key": "planning", "iterations": 0},
        {"key": "coding", "iterations": 1},
        {"key": "code_review", "iterations": 1},
    ]


def test_a_state_file_is_backed_up_and_a_new_run_started(rig: Rig) -> None:
    """000:507–509: a copy beside the state file is nobody's business, and a new --run-id is a fresh run."""
    first = rig.run("--run-id", "first")
    folder = rig.repo / ".agents" / "runs" / "first"
    assert shell(rig, BACKUP, cwd=folder).code == 0
    (folder / "run_state.json").write_text("corrupted")
    fresh = rig.run("--run-id", "second")
    assert (first.code, fresh.code) == (0, 0), fresh
    assert (folder / "run_state.json.bak").exists()
    assert rig.state("second")["steps"]["coding"]["attempts"] == 1


def test_deleting_the_run_directory_starts_fresh(rig: Rig) -> None:
    """000:494: delete the entire run directory to start fresh."""
    assert rig.run("--run-id", "again").code == 0
    assert shell(rig, "rm -r .agents/runs/again").code == 0
    assert rig.run("--run-id", "again").code == 0
    assert len(rig.launches("planning")) == 2
    assert rig.state("again")["steps"]["planning"]["attempts"] == 1
