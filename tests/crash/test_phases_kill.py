"""kill -9 of the engine in every status of a run of phases: agents adopted, iterations counted once, files whole."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Running, wait_until
from tests.acceptance.test_phases import script_four_phases

HELD = {
    "planning": ("planner", "plan"),
    "executing": ("task-executor", "1.1"),
    "reviewing": ("outer-ralph", "review"),
}
"""An agent at work in each status that a run has before it ends."""


def kill(running: Running) -> None:
    """Ends the engine at once; what it started lives on."""
    running.process.kill()
    running.process.wait()


def wait_for_another_agent(rig: PhasesRig, running: Running, polls: int) -> None:
    """Waits until one more agent has started, and then a little more."""
    begun = len(rig.started())
    wait_until(lambda: len(rig.started()) > begun or running.process.poll() is not None)
    left = iter(range(polls))
    wait_until(lambda: next(left, None) is None)


def check_worked_once(rig: PhasesRig) -> None:
    """Each iteration of each task was worked on once, by the agents' own log."""
    ended = [line.split()[1] for line in (rig.side / "launches.log").read_text().splitlines() if line.startswith("end task-")]
    assert set(Counter(ended).values()) == {1}, ended


@pytest.mark.parametrize("status", HELD)
def test_a_run_killed_in_any_status_goes_on_with_the_agent_that_lived_on(status: str, repo: Path) -> None:
    rig = PhasesRig(repo)
    script_four_phases(rig)
    rig.report("planner", {"status": "READY"})
    role, unit = HELD[status]
    rig.hold(role, unit)
    running = rig.start_phases("--yes", "--run-id", "killed", "--plan-with", str(rig.agent))
    wait_until(lambda: rig.started(f"{role}.{unit}"))
    wait_until(lambda: rig.state()["orchestrator"]["status"] == status)
    kill(running)
    rig.state()
    rig.open("go")
    resumed = rig.orc("resume", "killed")
    assert resumed.code == 0, resumed
    assert rig.started(f"{role}.{unit}")[0].endswith(" 1")
    assert rig.state()["orchestrator"]["status"] == "completed"
    check_worked_once(rig)
    rig.check_numbers()


def test_a_run_that_was_killed_after_its_end_is_still_ended(repo: Path) -> None:
    rig = PhasesRig(repo)
    assert rig.phases("--yes", "--run-id", "over").code == 0
    before = rig.state()
    again = rig.orc("resume", "over")
    assert again.code == 2
    assert "it is completed" in again.err
    assert rig.state() == before


KILLS = 6


def survive_kills(seed: int, repo: Path) -> int:
    """Kill the engine again and again, check that the document was executed once, and return how often it was killed."""
    rig, chance = PhasesRig(repo), random.Random(seed)
    script_four_phases(rig)
    running = rig.start_phases("--yes", "--run-id", "killed")
    running.wait_for("run killed")
    for _ in range(KILLS):
        wait_for_another_agent(rig, running, polls=chance.randint(0, 8))
        kill(running)
        if (rig.repo / ".claude" / "agent-state.json").exists():
            rig.state()
        running = rig.start("resume", "killed")
    done = running.end()
    assert done.code == 0 or "it is completed" in done.err, done
    state = rig.state()
    assert state["orchestrator"]["status"] == "completed"
    assert [entry["task"] for entry in state["completed_tasks"]] == ["1.1", "1.2", "2.1", "2.2", "2.3", "3.1", "4.1"]
    assert state["active_agents"] == []
    check_worked_once(rig)
    rig.check_numbers()
    shas = [json.dumps(entry["git_sha"]) for entry in state["checkpoints"]]
    assert len(shas) == len(set(shas))
    return KILLS


@pytest.mark.parametrize("seed", range(2))
def test_whenever_the_engine_is_killed_the_document_is_executed_once(seed: int, repo: Path) -> None:
    assert survive_kills(seed, repo) == KILLS
