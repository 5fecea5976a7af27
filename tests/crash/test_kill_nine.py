"""`kill -9` of the orchestrator at random moments, again and again: no fact is lost and no agent is launched twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from agent_orchestrator.core.events import Ended, StopReason
from tests.crash.rig import Orc, Rig, Watcher, wait_until

KILLS_PER_TEST = 11
SEEDS = range(6)
"""66 kills in all."""

TWELVE_STEPS = """
name: twelve
steps:
  - {id: plan, agent: planner, prompt: prompt.md}
  - {id: left, agent: coder, prompt: prompt.md, needs: [plan]}
  - {id: middle, agent: coder, prompt: prompt.md, needs: [plan], check: "test -n \\"$RUN_ID\\""}
  - {id: right, agent: coder, prompt: prompt.md, needs: [plan]}
  - {id: join, agent: coder, prompt: prompt.md, needs: [left, middle, right]}
  - {id: build, agent: coder, prompt: prompt.md, needs: [join]}
  - {id: test, agent: tester, prompt: prompt.md, needs: [build], check: "sleep 0.1"}
  - {id: review, agent: reviewer, prompt: prompt.md, needs: [test], loop_back_to: build}
  - {id: docs, agent: writer, prompt: prompt.md, needs: [review]}
  - {id: notes, agent: writer, prompt: prompt.md, needs: [review]}
  - {id: package, agent: packer, prompt: prompt.md, needs: [docs, notes]}
  - {id: ship, agent: shipper, prompt: prompt.md, needs: [package], check: "true"}
"""
AGAIN = ("build", "test", "review", "docs", "notes", "package", "ship")
"""The steps below the one that the review loops back to. The last four start for the first time in iteration 1."""
EXPECTED = {(step, "0"): 1 for step in ("plan", "left", "middle", "right", "join", "build", "test", "review")}
EXPECTED |= {(step, "1"): 1 for step in AGAIN}


def live_a_while(orc: Orc, chance: random.Random) -> bool:
    """Lets the process live for a moment that may lie anywhere; False when it ended by itself first."""
    if chance.random() < 0.85:
        # From the moment it drives: the start of the interpreter is the dullest part of its life.
        wait_until(lambda: orc.said or orc.ended)
    until_s = time.monotonic() + chance.uniform(0.0, 0.35)
    while time.monotonic() < until_s and not orc.ended:
        time.sleep(0.001)
    return not orc.ended


def drive_with_kills(rig: Rig, run: str, chance: random.Random, kills_left: int) -> int:
    """Runs, kills and resumes until the run has ended; answers with how often it killed."""
    killed = 0
    orc = rig.run(run)
    while True:
        if killed < kills_left and live_a_while(orc, chance):
            orc.kill()
            killed += 1
        elif killed >= kills_left:
            orc.end()
        stored = rig.stored(run)
        if stored is not None and stored.summary.ended:
            # Also when it was killed after the last fact and before the last print-out.
            rig.start("resume", run).end()
            return killed
        assert orc.ended, orc
        orc = rig.start("resume", run) if stored is not None else rig.run(run)


def check_run(rig: Rig, run: str) -> None:
    """Check what must be true of a run that was killed any number of times."""
    state, events = rig.fold(run)
    assert state.lifecycle.stop is StopReason.COMPLETED
    assert [event for event in events if isinstance(event, Ended)] == [Ended(stop=StopReason.COMPLETED)]
    assert rig.starts() == EXPECTED
    assert sorted(line[1:] for line in rig.log("end")) == sorted(line[1:] for line in rig.log("start"))
    steps = rig.steps(run)
    assert {step["status"] for step in steps.values()} == {"COMPLETED"}
    assert [unit for unit, step in steps.items() if step["iteration_count"]] == list(AGAIN)
    assert rig.living(run) == []


def survive_kills(seed: int, repo: Path) -> int:
    """Run workflows under kills until there were enough of them, and check each run; returns how many there were."""
    chance, kills = random.Random(seed), 0
    rig = Rig(repo, TWELVE_STEPS)
    number = 0
    while kills < KILLS_PER_TEST:
        run, number = f"run-{number}", number + 1
        with Watcher(rig.state_file(run)) as watcher:
            kills += drive_with_kills(rig, run, chance, KILLS_PER_TEST - kills)
        assert watcher.faults == []
        assert watcher.readings > 0
        check_run(rig, run)
        (rig.side / "agents.log").unlink()
    return kills


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_killed_at_random_moments_loses_nothing_and_starts_nothing_twice(seed: int, repo: Path) -> None:
    assert survive_kills(seed, repo) == KILLS_PER_TEST
