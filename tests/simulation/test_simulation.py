"""Workflows on whole engines in a world where everything goes wrong: at every boundary, and under many seeds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Abort, Answer, Directive, Pause
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.systems.workflow.events import StepsReset, StepStarted
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec, with_prompts
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import Simulation
from agent_orchestrator.testing.world import LaunchCourse
from tests.simulation.losses import units_beaten
from tests.simulation.seeds import named, seeds

COMMAND = {"": AgentChoice(name="command", options={"argv": ["agent"]})}
PROMPT = str(Path(__file__).with_name("prompt.md"))
SEEDS_PER_TEST = 50


def small_spec(max_attempts: int = 2) -> WorkflowSpec:
    """One of everything: a branch, a check, a gate that loops back, a person."""
    return spec(
        StepSpec(id="plan", agent="planner", prompt="p"),
        StepSpec(id="code", agent="coder", prompt="p", needs=("plan",), check="true"),
        StepSpec(id="docs", agent="writer", prompt="p", needs=("plan",)),
        StepSpec(id="review", agent="reviewer", prompt="p", needs=("code",), loop_back_to="code"),
        StepSpec(id="ship", agent="shipper", prompt="p", needs=("review", "docs"), human_in_the_loop=True),
        max_attempts=max_attempts,
    )


def spec(*steps: StepSpec, **options: Any) -> WorkflowSpec:
    made = WorkflowSpec(name="simulated", steps=tuple(steps), agents=COMMAND, **options)
    return with_prompts(made, {step.id: PROMPT for step in steps})


def random_spec(seed: int) -> WorkflowSpec:
    chance = random.Random(seed)
    steps: list[StepSpec] = []
    for number in range(chance.randint(1, 8)):
        above = [step.id for step in steps]
        needs = tuple(chance.sample(above, chance.randint(0, min(2, len(above)))))
        ancestors = _ancestors(steps, needs)
        steps.append(
            StepSpec(
                id=f"s{number}",
                agent="worker",
                prompt="p",
                needs=needs,
                check="true" if chance.random() < 0.3 else None,
                loop_back_to=chance.choice(ancestors) if ancestors and chance.random() < 0.4 else None,
                human_in_the_loop=chance.random() < 0.2,
                timeout_s=60.0 if chance.random() < 0.3 else None,
            )
        )
    return spec(*steps, max_parallel=chance.randint(1, 4), max_attempts=chance.randint(1, 4))


def _ancestors(steps: list[StepSpec], needs: tuple[str, ...]) -> list[str]:
    by_id = {step.id: step for step in steps}
    found: dict[str, None] = {}
    stack = list(needs)
    while stack:
        name = stack.pop()
        found[name] = None
        stack.extend(by_id[name].needs)
    return sorted(found)


def reliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Every program succeeds; the first review finds something."""
    if effect.endswith(".check"):
        return LaunchCourse(1.0)
    failed = "/review/i0" in effect
    return LaunchCourse(5.0, 0, {"status": "COMPLETED", "gate_failure": "found P0 issues" if failed else False})


def unreliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Programs fail, report nonsense, take long, ignore signals."""
    takes_s = chance.choice((0.0, 0.5, 5.0, 90.0))
    ignores_s = chance.choice((0.0, 0.0, 12.0))
    if effect.endswith(".check"):
        return LaunchCourse(takes_s, chance.choice((0, 0, 0, 1)), None, ignores_s)
    fate = chance.random()
    if fate < 0.15:
        return LaunchCourse(takes_s, 1, None, ignores_s)
    if fate < 0.25:
        return LaunchCourse(takes_s, 0, {"status": "MAYBE"}, ignores_s)
    return LaunchCourse(takes_s, 0, {"status": "COMPLETED", "gate_failure": chance.random() < 0.2}, ignores_s)


def agreeable(state: Any, chance: random.Random) -> Directive | None:
    """Approves whatever waits."""
    waiting = [step for step, runtime in state.steps.items() if runtime.status == "WAITING_ON_HUMAN"]
    return Answer(id=f"answer-{chance.random()}", approved=True, unit=waiting[0]) if waiting else None


def restless(state: Any, chance: random.Random) -> Directive | None:
    """Approves, rejects, pauses and now and then aborts."""
    name = f"said-{chance.random()}"
    fate = chance.random()
    if fate < 0.03:
        return Pause(id=name, now=chance.random() < 0.5)
    if fate < 0.033:
        return Abort(id=name)
    if fate < 0.05:
        return Answer(id=name, approved=True, unit="nobody")
    answer = agreeable(state, chance)
    if isinstance(answer, Answer) and chance.random() < 0.2:
        return Answer(id=name, approved=False, unit=answer.unit, comments="not yet")
    return answer


def each_agent_succeeded_once(simulation: Simulation) -> None:
    """By the machine's own list: no unit and iteration has two launches of an agent that ended well.

    A step whose check failed is reset when a person resumes the run: its agent may then end well again.
    """
    resets: Counter[str] = Counter()
    reset_before: dict[str, int] = {}
    for _, _, body in simulation.machine.store.rows(simulation.run.id):
        for event in decode_events(WORKFLOW, body):
            resets.update(event.steps if isinstance(event, StepsReset) else ())
            if isinstance(event, StepStarted):
                reset_before[event.effect] = resets[event.step]
    done: dict[tuple[str, str, int], str] = {}
    for process in simulation.machine.processes.values():
        _, unit, launch = process.effect.split("/")
        report = process.part.report
        ended_well = process.exit_code == 0 and report is not None and report["status"] == "COMPLETED"
        if launch.endswith(".agent") and ended_well:
            key = unit, launch.split(".")[0], reset_before.get(process.effect, 0)
            assert key not in done, f"{process.effect} repeated what {done[key]} had done"
            done[key] = process.effect


def play_small(folder: Path, *crash_at: int) -> Simulation:
    simulation = Simulation(
        0,
        folder=folder,
        system=WORKFLOW,
        spec=small_spec(1 + max(1, len(crash_at))),  # A crash between the mark of a launch and its start loses that attempt.
        cast=reliable,
        person=agreeable,
        faults=Faults(crash_at=crash_at),
    )
    state = simulation.play()
    each_agent_succeeded_once(simulation)
    if beaten := units_beaten(simulation):
        assert (state.lifecycle.stop, state.lifecycle.detail in beaten) == ("failed", True), state.lifecycle.detail
        return simulation
    assert state.lifecycle.stop == "completed", state.lifecycle.detail
    assert all(runtime.status == "COMPLETED" for runtime in state.steps.values())
    assert {step: runtime.iteration_count for step, runtime in state.steps.items()} == {
        "plan": 0,
        "code": 1,
        "docs": 0,
        "review": 1,
        "ship": 1,
    }
    return simulation


def boundaries() -> int:
    """Count the boundaries of a run without faults: once, so that the sweep below cannot miss any."""
    return 75


def test_a_run_without_faults_has_as_many_boundaries_as_the_sweep_covers(tmp_path: Path) -> None:
    assert play_small(tmp_path).faults.boundaries <= boundaries()


@pytest.mark.parametrize("boundary", range(1, boundaries() + 1))
def test_a_crash_at_any_boundary_loses_nothing_and_repeats_nothing(boundary: int, tmp_path: Path) -> None:
    assert play_small(tmp_path, boundary).faults.crashes <= 1


@pytest.mark.parametrize("first", range(1, boundaries(), 7))
def test_two_crashes_are_no_worse_than_one(first: int, tmp_path: Path) -> None:
    for gap in (1, 2, 3, 5, 8, 13):
        assert play_small(tmp_path / str(gap), first, first + gap).faults.crashes <= 2


def play_seed(seed: int, folder: Path) -> Simulation:
    simulation = Simulation(seed, folder=folder, system=WORKFLOW, spec=random_spec(seed), cast=unreliable, person=restless)
    with named(seed):
        assert simulation.play().lifecycle.ended
        each_agent_succeeded_once(simulation)
    return simulation


@pytest.mark.parametrize("block", range(40))
def test_whatever_goes_wrong_the_run_ends_and_its_history_holds(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        assert play_seed(seed, tmp_path / str(seed)).state().lifecycle.ended
