"""Runs of phases on whole engines in a world where everything goes wrong: at every boundary, and under many seeds."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice, AskHuman
from agent_orchestrator.core.inputs import Abort, Answer, Directive, Instruct, Pause
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.reports import TURNS
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.system import PHASES
from agent_orchestrator.testing.branches import SimulatedGit
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import Simulation
from agent_orchestrator.testing.world import LaunchCourse
from tests.simulation.losses import units_beaten
from tests.simulation.seeds import named, seeds

DOCUMENTS = Path(__file__).parents[1] / "scenarios" / "documents"
COMMAND = AgentChoice(name="command", options={"argv": ["agent"]})
SEEDS_PER_TEST = 20
GOOD: dict[str, object] = {"status": "SUCCESS", "criteria": {"it_is_good": True}}
PARTIAL: dict[str, object] = {"status": "PARTIAL"}
REVIEWS: list[dict[str, object]] = [
    {"status": "CLEAN"},
    {"status": "FIXED"},
    {"status": "FOUND", "findings": [{"priority": "P1", "issue": "slow"}]},
]
VERDICTS: list[dict[str, object]] = [
    {"status": "PASS"},
    {"status": "PASS"},
    {"status": "AUTO_FIX", "auto_fixes": [{"file": "a.py", "issue": "names"}]},
    {"status": "RE_PLAN", "conflicts": [{"type": "api", "recommendation": "keep it"}]},
    {"status": "PASS", "criteria": {"it_is_good": False}},
]


def spec(document: str, **options: Any) -> PhasesSpec:
    plan = parse_document((DOCUMENTS / f"{document}.md").read_text("utf-8"), "task.md").plan
    return PhasesSpec(document="/repo/task.md", plan=plan, agents={"": COMMAND}, branch="phases/task", **options)


def is_agent(effect: str) -> bool:
    return effect.rpartition(".")[2] in TURNS


def unreliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Programs fail, report nonsense, take long, ignore signals; reports may be of any role."""
    takes_s = chance.choice((0.0, 0.5, 5.0, 90.0))
    ignores_s = chance.choice((0.0, 0.0, 12.0))
    if not is_agent(effect):
        return LaunchCourse(takes_s, chance.choice((0, 0, 1)), None, ignores_s)
    fate = chance.random()
    if fate < 0.15:
        return LaunchCourse(takes_s, 1, None, ignores_s)
    unit = effect.split("/")[1]
    if unit == "review":
        return LaunchCourse(takes_s, 0, chance.choice(REVIEWS), ignores_s)
    return LaunchCourse(takes_s, 0, chance.choice([GOOD, GOOD, GOOD, PARTIAL, *VERDICTS]), ignores_s)


def agreeable(state: Any, chance: random.Random) -> Directive | None:
    """Says yes to whatever is asked."""
    asked = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    return Answer(id=f"answer-{chance.random()}", approved=True, unit=asked[0]) if asked else None


def restless(state: Any, chance: random.Random) -> Directive | None:
    """Answers, pauses, skips, retries, rewinds, wants checks and now and then aborts."""
    name = f"said-{chance.random()}"
    fate = chance.random()
    if fate < 0.02:
        return Pause(id=name, now=chance.random() < 0.5)
    if fate < 0.023:
        return Abort(id=name)
    if fate < 0.05:
        what = chance.choice(("skip", "retry", "check", "rewind", "nonsense"))
        return Instruct(id=name, what=what, values={"task": chance.choice(list(state.plan)), "to": "checkpoint-001"})
    asked = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    if asked:
        return Answer(id=name, approved=chance.random() < 0.7, comments="as I said", unit=chance.choice(asked))
    return None


def check_history(simulation: Simulation, state: Any) -> None:
    """Check that the state file says what the machine and the repository know."""
    repository = simulation.git
    assert repository is not None
    made = set(repository.commits.values())
    assert all(entry.git_sha in made for entry in state.checkpoints)
    numbers = [entry.state_snapshot for entry in state.checkpoints]
    assert numbers == sorted(set(numbers))
    for done in state.completed.values():
        worked = {
            process.effect.split("/")[2].split(".")[0]
            for process in simulation.machine.processes.values()
            if process.effect.split("/")[1] == done.task and is_agent(process.effect)
        }
        assert worked >= {f"i{number}" for number in range(1, done.iterations + 1)}


def reliable(effect: str) -> LaunchCourse:
    """Everybody does well; the first task takes two iterations."""
    _, unit, launch = effect.split("/")
    if not is_agent(effect):
        return LaunchCourse(1.0, 1 if (unit, launch[:2]) == ("1.1", "i1") else 0)
    if unit == "review":
        return LaunchCourse(5.0, 0, {"status": "CLEAN"})
    return LaunchCourse(5.0, 0, GOOD)


def without_supervisor(**options: Any) -> PhasesSpec:
    made = spec("small", yes=True, **options)
    supervision = msgspec.structs.replace(made.plan.supervision, enabled=False)
    return msgspec.structs.replace(made, plan=msgspec.structs.replace(made.plan, supervision=supervision))


BOUNDARIES = 80
"""At least as many as a run without faults has; a test says so, so that the sweep cannot miss any."""


def play_plain(folder: Path, *crash_at: int) -> Simulation:
    simulation = Simulation(
        0,
        folder=folder,
        system=PHASES,
        spec=without_supervisor(max_attempts=1 + max(1, len(crash_at))),  # A crash may lose an attempt that was about to start.
        cast=lambda effect, chance: reliable(effect),
        person=agreeable,
        faults=Faults(crash_at=crash_at),
        git=partial(SimulatedGit, 0, trouble=0.0),
    )
    state = simulation.play()
    check_history(simulation, state)
    assert state.status == "completed", state.lifecycle.detail
    iterations = {done.task: done.iterations for done in state.completed.values()}
    wanted = {"1.1": 2, "1.2": 1, "2.1": 1}
    beaten = units_beaten(simulation)
    assert {unit for unit, count in wanted.items() if iterations[unit] != count} <= beaten, iterations
    assert len(state.checkpoints) == 3
    return simulation


def test_a_run_without_faults_has_as_many_boundaries_as_the_sweep_covers(tmp_path: Path) -> None:
    assert play_plain(tmp_path).faults.boundaries <= BOUNDARIES


@pytest.mark.parametrize("boundary", range(1, BOUNDARIES + 1))
def test_a_crash_at_any_boundary_loses_nothing_and_counts_each_iteration_once(boundary: int, tmp_path: Path) -> None:
    assert play_plain(tmp_path, boundary).faults.crashes <= 1


def play_seed(seed: int, folder: Path) -> Simulation:
    chance = random.Random(seed)
    simulation = Simulation(
        seed,
        folder=folder,
        system=PHASES,
        spec=spec(chance.choice(("small", "plain", "beside")), yes=seed % 3 > 0, max_parallel=chance.choice((1, 3))),
        cast=unreliable,
        person=restless,
        git=partial(SimulatedGit, 0, trouble=0.0),
    )
    with named(seed):
        state = simulation.play()
        assert state.lifecycle.ended
        check_history(simulation, state)
    return simulation


@pytest.mark.parametrize("block", range(10))
def test_whatever_goes_wrong_the_run_ends_and_its_history_holds(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        assert play_seed(seed, tmp_path / str(seed)).state().lifecycle.ended
