"""Loops on whole engines in a world where everything goes wrong: at every boundary, and under many seeds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import AgentChoice, AskHuman
from agent_orchestrator.core.inputs import Abort, Answer, Directive, Instruct, Pause
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.system import LOOP
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import Simulation
from agent_orchestrator.testing.world import LaunchCourse
from tests.simulation.seeds import named, seeds

COMMAND = AgentChoice(name="command", options={"argv": ["agent"]})
PASSES_IN = 3
SEEDS_PER_TEST = 25


def small_spec() -> LoopSpec:
    return LoopSpec(task="make it so", completion="make", command="make", agent=COMMAND, max_iterations=10)


def reliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Agents do well; the check passes after the third iteration."""
    launch = effect.split("/")[2]
    if launch.endswith(".agent"):
        return LaunchCourse(5.0, 0, {"summary": "did it"})
    return LaunchCourse(1.0, 0 if int(launch[1:].split(".")[0]) >= PASSES_IN else 1)


def unreliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Programs fail, report nonsense, take long, ignore signals."""
    takes_s = chance.choice((0.0, 0.5, 5.0, 90.0))
    ignores_s = chance.choice((0.0, 0.0, 12.0))
    if not effect.endswith((".agent", ".confirm")):
        return LaunchCourse(takes_s, chance.choice((0, 1, 1)), None, ignores_s)
    fate = chance.random()
    if fate < 0.15:
        return LaunchCourse(takes_s, 1, None, ignores_s)
    report: dict[str, object] = {"quality_score": "much"} if fate < 0.25 else {"done": chance.random() < 0.4}
    if effect.endswith(".confirm"):
        report = {"status": chance.choice(("PASS", "FAIL", "MAYBE"))}
    return LaunchCourse(takes_s, 0, report, ignores_s)


def random_spec(seed: int) -> LoopSpec:
    chance = random.Random(seed)
    prose = chance.random() < 0.3
    return LoopSpec(
        task="make it so",
        completion="it is good" if prose else "make",
        command=None if prose else "make",
        agent=COMMAND,
        confirm_with=COMMAND if chance.random() < 0.5 else None,
        test_command="make test" if chance.random() < 0.5 else None,
        max_iterations=chance.randint(1, 6),
        timeout_minutes=chance.choice((None, 1, 60)),
        interactive=chance.random() < 0.3,
        checkpoint_interval=chance.randint(1, 3),
        git=chance.random() < 0.8,
        iteration_timeout_s=60.0 if chance.random() < 0.5 else None,
    )


def agreeable(state: Any, chance: random.Random) -> Directive | None:
    """Says yes to whatever is asked."""
    asked = isinstance(state.doing.of("loop"), AskHuman)
    return Answer(id=f"answer-{chance.random()}", approved=True) if asked else None


def restless(state: Any, chance: random.Random) -> Directive | None:
    """Answers, pauses, steers and now and then aborts."""
    name = f"said-{chance.random()}"
    fate = chance.random()
    if fate < 0.03:
        return Pause(id=name, now=chance.random() < 0.5)
    if fate < 0.035:
        return Abort(id=name)
    if fate < 0.05:
        return Instruct(id=name, what=chance.choice(("steer", "nonsense")), values={"text": "go left"})
    if isinstance(state.doing.of("loop"), AskHuman):
        return Answer(id=name, approved=chance.random() < 0.7, comments="not quite")
    return None


def no_iteration_was_worked_twice(simulation: Simulation) -> None:
    """By the machine's own list: no iteration has two agents that ended well."""
    done: dict[str, str] = {}
    for process in simulation.machine.processes.values():
        launch = process.effect.split("/")[2]
        if launch.endswith(".agent") and process.exit_code == 0:
            iteration = launch.split(".")[0]
            assert iteration not in done, f"{process.effect} repeated what {done[iteration]} had done"
            done[iteration] = process.effect


def play_small(folder: Path, *crash_at: int) -> Simulation:
    simulation = Simulation(
        0, folder=folder, system=LOOP, spec=small_spec(), cast=reliable, person=agreeable, faults=Faults(crash_at=crash_at)
    )
    state = simulation.play()
    no_iteration_was_worked_twice(simulation)
    lost = [process.effect for process in simulation.machine.processes.values() if process.exit_code is None]
    if lost:
        # The engine died between the mark of a launch and its start: nobody can know whether it ran.
        assert state.status == "crashed", state.lifecycle.detail
    else:
        assert state.status == "completed", state.lifecycle.detail
        assert state.iteration == PASSES_IN
    return simulation


BOUNDARIES = 75
"""At least as many as a loop without faults has; a test says so, so that the sweep cannot miss any."""


def test_a_loop_without_faults_has_as_many_boundaries_as_the_sweep_covers(tmp_path: Path) -> None:
    assert play_small(tmp_path).faults.boundaries <= BOUNDARIES


@pytest.mark.parametrize("boundary", range(1, BOUNDARIES + 1))
def test_a_crash_at_any_boundary_loses_nothing_and_counts_each_iteration_once(boundary: int, tmp_path: Path) -> None:
    assert play_small(tmp_path, boundary).faults.crashes <= 1


def play_seed(seed: int, folder: Path) -> Simulation:
    simulation = Simulation(seed, folder=folder, system=LOOP, spec=random_spec(seed), cast=unreliable, person=restless)
    with named(seed):
        assert simulation.play().lifecycle.ended
        no_iteration_was_worked_twice(simulation)
    return simulation


@pytest.mark.parametrize("block", range(12))
def test_whatever_goes_wrong_the_loop_ends_and_its_history_holds(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        assert play_seed(seed, tmp_path / str(seed)).state().lifecycle.ended
