"""Swarm runs on whole engines in a world where everything goes wrong: at every boundary, and under many seeds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Abort, Directive, Instruct, Pause
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec
from agent_orchestrator.systems.swarm.state import SwarmState
from agent_orchestrator.systems.swarm.system import SWARM
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import Simulation
from agent_orchestrator.testing.world import LaunchCourse
from tests.simulation.seeds import named, seeds

COMMAND = AgentChoice(name="command", options={"argv": ["agent"]})
SEEDS_PER_TEST = 25


def bead(name: str, **more: Any) -> BeadSpec:
    return BeadSpec(**{"id": name, "prompt": f"do {name}", "agent": COMMAND, "repo": "/repo", **more})


def small_spec() -> SwarmSpec:
    return SwarmSpec(beads=(bead("a", verify="make"), bead("b"), bead("c", needs=("a", "b"), branch="w/c")), max_agents=2)


def reliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Everybody does well, but the first attempt of `b`."""
    return LaunchCourse(5.0, 1 if "/b/i0.a1." in effect else 0)


def unreliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Programs fail, report nonsense, take long, ignore signals."""
    takes_s = chance.choice((0.0, 0.5, 5.0, 90.0))
    ignores_s = chance.choice((0.0, 0.0, 12.0))
    if not effect.endswith(".agent"):
        return LaunchCourse(takes_s, chance.choice((0, 0, 1)), None, ignores_s)
    fate = chance.random()
    if fate < 0.25:
        return LaunchCourse(takes_s, chance.choice((1, 137)), None, ignores_s)
    report: dict[str, object] | None = (
        {"status": chance.choice(("done", "failed", "maybe")), "reason": "x"} if fate < 0.6 else None
    )
    return LaunchCourse(takes_s, 0, report, ignores_s)


def random_spec(seed: int) -> SwarmSpec:
    chance = random.Random(seed)
    beads: list[BeadSpec] = []
    for number in range(chance.randint(1, 7)):
        earlier = [one.id for one in beads]
        needs = tuple(chance.sample(earlier, min(len(earlier), chance.randint(0, 2))))
        beads.append(
            bead(
                f"b{number}",
                needs=needs,
                repo=chance.choice(("/repo", "/other")),
                branch=chance.choice(("", "", f"w/{number}")),
                priority=chance.randint(0, 4),
                verify="make" if chance.random() < 0.3 else None,
                max_attempts=chance.randint(1, 3),
                timeout_s=chance.choice((30.0, 3_600.0)),
            )
        )
    return SwarmSpec(
        beads=tuple(beads),
        max_agents=chance.randint(1, 4),
        stop_after_failures=chance.choice((None, None, 1, 2)),
        shared=chance.random() < 0.4,
        bd_close=chance.random() < 0.3,
    )


def quiet(state: Any, chance: random.Random) -> Directive | None:
    """Says nothing."""
    return None


def restless(state: SwarmState, chance: random.Random) -> Directive | None:
    """Pauses, stops, retries and now and then aborts."""
    name, fate = f"said-{chance.random()}", chance.random()
    if fate < 0.03:
        return Pause(id=name, now=chance.random() < 0.5)
    if fate < 0.035:
        return Abort(id=name)
    if fate < 0.06:
        what = chance.choice(("stop", "retry", "release", "merge", "nonsense"))
        return Instruct(id=name, what=what, values={"beads": [chance.choice(list(state.beads))], "into": "main"})
    return None


def no_attempt_was_made_twice(simulation: Simulation, state: SwarmState) -> None:
    """By the machine's own list: no attempt has two agents that ended by themselves, and none is beyond its limit."""
    ended: Counter[str] = Counter()
    for process in simulation.machine.processes.values():
        launch = process.effect.rpartition("/")[2]
        if launch.endswith(".agent") and process.exit_code == 0:
            ended[process.effect.rpartition(".l")[0]] += 1
    assert not [attempt for attempt, count in ended.items() if count > 1], ended
    for held in state.beads.values():
        assert held.attempt <= held.limit
        assert [one.run.attempt for one in held.kept] == list(range(1, len(held.kept) + 1))


def play_small(folder: Path, *crash_at: int) -> Simulation:
    simulation = Simulation(
        0, folder=folder, system=SWARM, spec=small_spec(), cast=reliable, person=quiet, faults=Faults(crash_at=crash_at)
    )
    state: SwarmState = simulation.play()
    no_attempt_was_made_twice(simulation, state)
    lost = [process.effect for process in simulation.machine.processes.values() if process.exit_code is None]
    if not lost:
        # A crash between the mark of a launch and its start loses that attempt; without one, each ends as it must.
        assert [state.standing(name) for name in "abc"] == ["done", "done", "done"]
        assert [state.beads[name].attempt for name in "abc"] == [1, 2, 1]
    return simulation


BOUNDARIES = 75
"""At least as many as a run without faults has; a test says so, so that the sweep cannot miss any."""


def test_a_run_without_faults_has_as_many_boundaries_as_the_sweep_covers(tmp_path: Path) -> None:
    assert play_small(tmp_path).faults.boundaries <= BOUNDARIES


@pytest.mark.parametrize("boundary", range(1, BOUNDARIES + 1))
def test_a_crash_at_any_boundary_loses_nothing_and_makes_no_attempt_twice(boundary: int, tmp_path: Path) -> None:
    assert play_small(tmp_path, boundary).faults.crashes <= 1


def play_seed(seed: int, folder: Path) -> Simulation:
    simulation = Simulation(seed, folder=folder, system=SWARM, spec=random_spec(seed), cast=unreliable, person=restless)
    with named(seed):
        state = simulation.play()
        assert state.lifecycle.ended
        no_attempt_was_made_twice(simulation, state)
    return simulation


@pytest.mark.parametrize("block", range(12))
def test_whatever_goes_wrong_the_run_ends_and_its_history_holds(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        assert play_seed(seed, tmp_path / str(seed)).state().lifecycle.ended


def test_what_the_first_words_of_a_new_process_drop_is_stopped_though_nobody_adopted_it(tmp_path: Path) -> None:
    assert play_seed(1147, tmp_path).state().lifecycle.ended
