"""The terms of a loop that goes on: its budget, its mode, and what its files say of the loop before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    rig = LoopRig(repo)
    rig.do("echo $ITERATION $LOOP_SEED >> n")
    return rig


@pytest.fixture
def failed(rig: LoopRig) -> str:
    """A loop that made its one iteration and is over."""
    ended = rig.loop("--max-iterations", "1")
    assert ended.code == 5, ended
    return loop_of(ended)


@pytest.fixture
def paused(rig: LoopRig) -> str:
    """A loop that waits for a person to go on, after one iteration."""
    rig.do("until [ -s ../side/engine ]; do sleep 0.02; done; kill -INT $(cat ../side/engine)", 1)
    running = rig.start_loop()
    (rig.side / "engine").write_text(str(running.process.pid))
    assert running.end().code == 130
    return loop_of(running)


def test_a_successor_is_not_given_a_budget_that_its_agent_would_escape(rig: LoopRig, failed: str) -> None:
    refused = rig.orc("loop", "resume", failed, "--max-iterations", "2", "--budget-usd", "5")
    assert refused.code == 2
    assert "command does not say what it costs, and unknown is not zero" in refused.err
    assert rig.state(failed)["error_context"]["recovery_attempted"] is False
    allowed = rig.orc("loop", "resume", failed, "--max-iterations", "2", "--budget-usd", "5", "--allow-unmetered")
    assert allowed.code == 5, allowed


def test_another_agent_does_not_escape_the_budget_that_is_kept(rig: LoopRig) -> None:
    (rig.side / "script.yaml").write_text("- {write: {n: one}, cost_usd: 0.1}\n")
    script = ("--rehearse", str(rig.side / "script.yaml"))
    started = rig.orc("loop", "run", "x", "--until", "false", *script, "--budget-usd", "5", "--max-iterations", "1")
    assert started.code == 5, started
    other = ("--max-iterations", "2", "--agent-command", str(rig.agent))
    refused = rig.orc("loop", "resume", loop_of(started), *other)
    assert refused.code == 2
    assert "command does not say what it costs" in refused.err
    assert rig.orc("loop", "resume", loop_of(started), *other, "--allow-unmetered").code == 5


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_mode_that_the_agent_cannot_have_is_refused_when_a_loop_goes_on(
    rig: LoopRig, paused: str, detach: tuple[str, ...]
) -> None:
    refused = rig.orc("loop", "resume", paused, "--execution-mode", "strict", *detach)
    assert refused.code == 2
    assert "strict needs an agent with a temperature to set to 0; command has none" in refused.err
    assert rig.state(paused)["status"] == "paused"


def test_a_mode_that_the_agent_cannot_have_is_refused_when_it_was_written_by_hand(rig: LoopRig, paused: str) -> None:
    file = rig.ralph / "loops" / paused / "state.json"
    state = rig.state(paused)
    state["configuration"]["execution_mode"] = "strict"
    file.write_text(json.dumps(state))
    refused = rig.orc("loop", "resume", paused, "--adopt-edits")
    assert refused.code == 2
    assert "strict needs an agent with a temperature to set to 0; command has none" in refused.err
    assert rig.orc("loop", "resume", paused, "--max-iterations", "2", "--no-adopt-edits").code == 5


def test_a_loop_that_becomes_seeded_hands_a_seed_on(rig: LoopRig, failed: str) -> None:
    assert rig.orc("loop", "resume", failed, "--max-iterations", "2", "--execution-mode", "seeded").code == 5
    assert (rig.repo / "n").read_text().splitlines() == ["1", "2 0"]


def test_an_aborted_loop_says_that_it_has_a_successor(rig: LoopRig, paused: str) -> None:
    assert rig.orc("loop", "abort", paused).code == 0
    assert rig.state(paused)["error_context"] is None
    assert rig.orc("loop", "resume", paused, "--max-iterations", "2").code == 5
    assert rig.state(paused)["error_context"] == {"recovery_attempted": True}


def test_a_loop_at_its_limit_says_how_it_can_go_on(rig: LoopRig) -> None:
    ended = rig.loop("--max-iterations", "1")
    loop = loop_of(ended)
    assert f"try again: orc loop resume {loop} --max-iterations N" in ended.out
    assert f"continue its work: orc loop resume {loop} --max-iterations N" in rig.orc("loop", "status", loop).out
    refused = rig.orc("loop", "resume", loop)
    assert refused.code == 2
    assert "it made 1 iteration, and 1 is its limit; raise --max-iterations" in refused.err


def test_what_to_do_about_a_loop_that_is_over_is_said_by_every_command(rig: LoopRig, failed: str) -> None:
    generic = rig.orc("resume", failed)
    assert generic.code == 2
    assert f"it is terminal; `orc loop resume {failed}` starts a successor." in generic.err
    again = rig.loop("--loop-id", failed, "--git-worktree")
    assert again.code == 2
    said = f"Loop {failed} exists already (it is limit_reached); continue with `orc loop resume {failed}`, or give another id."
    assert said in again.err


def test_files_that_were_put_back_from_a_backup_are_no_edits(rig: LoopRig, paused: str) -> None:
    backup = rig.side / "backup"
    shutil.copytree(rig.repo / ".aiwg", backup)
    shutil.rmtree(rig.repo / ".aiwg")
    shutil.copytree(backup, rig.repo / ".aiwg")
    rig.do("touch done")
    done = rig.orc("loop", "resume")
    assert done.code == 0, done
    assert "edited" not in done.err
    assert "changed while" not in done.out + done.err
    assert list(rig.ralph.glob("**/*.edited-*")) == []
    assert rig.checkpoint(paused, 1)["loop_id"] == paused
