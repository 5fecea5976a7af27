"""Faults in the simulation: a crash at each boundary, two at any distance, many in a row, and schedules in which all goes wrong.

The runs and their invariants are those of `tests/simulation`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_orchestrator.testing.simulation import Simulation
from proof.trial import SYSTEMS, Kind, Trial
from tests.simulation import (
    test_loop_simulation,
    test_phases_simulation,
    test_simulation,
    test_swarm_simulation,
    test_team_simulation,
)

SMALL: dict[str, Callable[..., Simulation]] = {
    "workflow": test_simulation.play_small,
    "loop": test_loop_simulation.play_small,
    "phases": test_phases_simulation.play_plain,
    "team": test_team_simulation.play_small,
    "swarm": test_swarm_simulation.play_small,
}
BOUNDARIES = {
    "workflow": test_simulation.boundaries(),
    "loop": test_loop_simulation.BOUNDARIES,
    "phases": test_phases_simulation.BOUNDARIES,
    "team": test_team_simulation.BOUNDARIES,
    "swarm": test_swarm_simulation.BOUNDARIES,
}
SEEDED: dict[str, Callable[[int, Path], Simulation]] = {
    "workflow": test_simulation.play_seed,
    "loop": test_loop_simulation.play_seed,
    "phases": test_phases_simulation.play_seed,
    "team": test_team_simulation.play_seed,
    "swarm": test_swarm_simulation.play_seed,
}
SCHEDULES = {"workflow": 15_000, "loop": 15_000, "phases": 4_000, "team": 400, "swarm": 15_000}
"""Seeded schedules of a whole proof, by what one of them costs."""
PAIRS = {"workflow": 5_625, "loop": 5_625, "phases": 6_400, "team": 3_000, "swarm": 5_625}
"""Pairs of crashes; of teams, whose runs are long, a part of the 52,900 that there are."""
STORMS = {"workflow": 2_500, "loop": 2_500, "phases": 2_000, "team": 800, "swarm": 2_500}
STORM_CRASHES = 25
STRIDE = 10_007
"""A prime: steps of that size come by every pair of a square before any pair comes twice."""


def plan_single(seed: int, scale: float) -> Iterator[Trial]:
    """Every boundary, whatever the scale: there are few."""
    step = 1 if scale >= 1 else max(1, round(1 / max(scale, 0.01)))
    for system in SYSTEMS:
        for boundary in range(1, BOUNDARIES[system] + 1, step):
            yield Trial("crash", system, (boundary,))


def plan_pairs(seed: int, scale: float) -> Iterator[Trial]:
    """Pairs of crashes, no pair twice, spread over all first boundaries and distances."""
    for system in SYSTEMS:
        most = BOUNDARIES[system]
        for number in range(round(PAIRS[system] * scale)):
            first, gap = divmod((seed + number) * STRIDE % most**2, most)
            yield Trial("crashes", system, (first + 1, first + gap + 2))


def plan_storms(seed: int, scale: float) -> Iterator[Trial]:
    """Storms by their seeds."""
    for system in SYSTEMS:
        for number in range(max(1, round(STORMS[system] * scale))):
            yield Trial("storm", system, (seed + number,))


def plan_schedules(seed: int, scale: float) -> Iterator[Trial]:
    """Schedules by their seeds; those of the test suite come first."""
    for system in SYSTEMS:
        for number in range(max(1, round(SCHEDULES[system] * scale))):
            yield Trial("schedule", system, (seed + number,))


def play_crashes(trial: Trial, folder: Path) -> int:
    """Play the small run of a system with crashes at these boundaries."""
    return SMALL[trial.system](folder, *trial.numbers).faults.crashes


def play_storm(trial: Trial, folder: Path) -> int:
    """Play the small run with crashes at many boundaries that the seed chooses; those after its end count for nothing."""
    chance = random.Random(trial.name)
    points = range(1, BOUNDARIES[trial.system] + 3 * STORM_CRASHES)
    return SMALL[trial.system](folder, *chance.sample(points, STORM_CRASHES)).faults.crashes


def play_schedule(trial: Trial, folder: Path) -> int:
    """Play a run under one seed; each process that died in the middle counts."""
    return SEEDED[trial.system](trial.numbers[0], folder).faults.crashes


KINDS = (
    Kind(name="crash", unit="crash points", plan=plan_single, play=play_crashes, max_s=60, in_memory=True),
    Kind(name="crashes", unit="crash points", plan=plan_pairs, play=play_crashes, max_s=60, in_memory=True),
    Kind(name="storm", unit="crash points", plan=plan_storms, play=play_storm, max_s=60, in_memory=True),
    Kind(name="schedule", unit="crash points", plan=plan_schedules, play=play_schedule, max_s=60, in_memory=True),
)
