"""Teams on whole engines in a world where everything goes wrong: six groups, random outcomes, crashes at every boundary."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice, AskHuman
from agent_orchestrator.core.inputs import Abort, Answer, Directive, Instruct, Pause
from agent_orchestrator.systems.team.spec import TeamSpec, split_requirements
from agent_orchestrator.systems.team.state import Stage, TeamState
from agent_orchestrator.systems.team.system import TEAM
from agent_orchestrator.testing.branches import SimulatedGit
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import Simulation
from agent_orchestrator.testing.systems import play_system
from agent_orchestrator.testing.world import LaunchCourse
from tests.scenarios.team_world import document_faults, group, plan
from tests.simulation.seeds import named, seeds

COMMAND = AgentChoice(name="command", options={"argv": ["agent"]})
SEEDS_PER_TEST = 2
AFTER = {"C": ("A",), "D": ("A", "B"), "F": ("D",)}
FILES = {"B": ("b.py", "shared/"), "E": ("shared/e.py",)}


def six_groups(chance: random.Random) -> dict[str, Any]:
    groups = [
        group(name, *AFTER.get(name, ()), files=FILES.get(name, ()), can_parallel=chance.random() < 0.85) for name in "ABCDEF"
    ]
    return plan(*groups, mode=chance.choice(["parallel", "parallel", "simple"]))


def fine(kind: str) -> dict[str, Any]:
    words = {"final": "DONE", "confirm": "APPROVED", "develop": "READY_FOR_QA", "qa": "PASS", "review": "APPROVED"}
    return {"status": words.get(kind, "UNBLOCKED"), "summary": "fine", "feedback": "fine"}


def reliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Everybody does well."""
    kind = effect.rsplit(".", 1)[1]
    if kind == "plan":
        return LaunchCourse(5.0, 0, plan(group("A"), group("B"), group("C", "A")))
    return LaunchCourse(1.0) if kind in ("merge", "check") else LaunchCourse(5.0, 0, fine(kind))


def unreliable(effect: str, chance: random.Random) -> LaunchCourse:
    """Programs fail, report nonsense, take long, ignore signals; roles say whatever they may say."""
    kind = effect.rsplit(".", 1)[1]
    takes_s = chance.choice((0.0, 0.5, 5.0, 90.0))
    ignores_s = chance.choice((0.0, 0.0, 12.0))
    if kind in ("merge", "check"):
        return LaunchCourse(takes_s, chance.choice((0, 0, 0, 1)), None, ignores_s)
    fate = chance.random()
    if fate < 0.08:
        return LaunchCourse(takes_s, 1, None, ignores_s)
    if fate < 0.12:
        return LaunchCourse(takes_s, 0, {"status": "WHATEVER"}, ignores_s)
    return LaunchCourse(takes_s, 0, anything(effect, chance), ignores_s)


def anything(effect: str, chance: random.Random) -> dict[str, Any]:
    """A valid report of the role, mostly a good one."""
    launch, kind = effect.rsplit("/", 1)[1].rsplit(".", 1)
    fate = chance.random()
    if kind == "plan":
        if fate < 0.15:
            return {"status": "NEEDS_CLARIFICATION", "questions": ["why?"]}
        # A later plan may be the first that is valid, or one more to a plan that stands.
        more = not launch.startswith("i1.") and chance.random() < 0.5
        return {"status": "PLANNING_COMPLETE", "groups": []} if more else six_groups(chance)
    report = fine(kind)
    if fate < 0.35:
        words = {
            "develop": ("READY_FOR_REVIEW", "BLOCKED", "PARTIAL"),
            "qa": ("FAIL",),
            "review": ("CHANGES_REQUESTED",),
            "confirm": ("CHANGES_REQUESTED",),
        }.get(kind, (report["status"],))
        report |= {"status": chance.choice(words), "blocker": "stuck", "failures": ["no"]}
    return report


def spec_of(seed: int) -> TeamSpec:
    chance = random.Random(seed)
    text = chance.choice(["do it all", "- one thing (check: make one)\n- another\n"])
    return TeamSpec(
        requirements=text,
        wanted=split_requirements(text),
        agents={"": COMMAND},
        into="main",
        check=chance.choice([None, "make"]),
        max_parallel=chance.randint(1, 4),
        max_qa_rounds=chance.randint(1, 5),
        max_review_rounds=chance.randint(1, 5),
        agent_timeout_s=chance.choice([None, 60.0]),
    )


def check_state(state: TeamState) -> None:
    """Check what must hold at every durable moment: valid files, one count for one fact, messages once, merges in line."""
    for document in TEAM.documents(state, 0):
        assert document_faults(document.path, msgspec.to_builtins(document.body)) == []
    assert state.completed == [name for name in state.completed if state.groups[name].stage is Stage.COMPLETE]
    assert len(state.developing) <= state.spec.max_parallel
    ids = Counter(one["id"] for sent in state.messages.values() for one in sent)
    assert all(count == 1 for count in ids.values()), f"a message was sent twice: {ids}"
    merging = [effect.unit for effect in state.doing if effect.id.endswith(".merge")]
    assert len(merging) <= 1, f"{merging} are merged at once"


def agreeable(state: Any, chance: random.Random) -> Directive | None:
    """Says yes to whatever is asked."""
    asked = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    return Answer(id=f"answer-{chance.random()}", approved=True, unit=asked[0]) if asked else None


def restless(state: Any, chance: random.Random) -> Directive | None:
    """Answers, pauses, asks for more and now and then aborts."""
    name, fate = f"said-{chance.random()}", chance.random()
    if fate < 0.02:
        return Pause(id=name, now=chance.random() < 0.5)
    if fate < 0.0202:
        return Abort(id=name)
    if fate < 0.03 and len(state.requirements) < 4:
        return Instruct(id=name, what=chance.choice(("require", "nonsense")), values={"text": f"more {len(state.requirements)}"})
    asked = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    if asked:
        return Answer(id=name, approved=chance.random() < 0.99, unit=chance.choice(asked), comments="go on")
    return None


def check_end(state: TeamState) -> None:
    """Completed means that every group is and that every requirement has what it needs; anything else says why."""
    team = msgspec.to_builtins(next(iter(TEAM.documents(state, 0))).body)
    if team["status"] == "completed":
        assert all(one.stage is Stage.COMPLETE for one in state.groups.values())
        assert all(one.met_by for one in state.requirements)
    else:
        assert team["status"] == "error"
        assert team["decisions_log"][-1]["reasoning"]


def check_landed(state: TeamState, git: SimulatedGit | None) -> None:
    """The repository has exactly what the completed groups made."""
    assert git is not None
    landed = sorted(branch for _, branch in git.landed)
    made = sorted(state.groups[name].branch_name for name in state.completed)
    assert landed == made if state.lifecycle.stop == "completed" else set(landed) >= set(made)


def play_small(folder: Path, *crash_at: int) -> Simulation:
    simulation = Simulation(
        0,
        folder=folder,
        system=TEAM,
        spec=TeamSpec(requirements="do", wanted=split_requirements("do"), agents={"": COMMAND}, into="main", check="make"),
        cast=reliable,
        person=agreeable,
        faults=Faults(crash_at=crash_at),
        git=partial(SimulatedGit, 0, trouble=0.0),
        check=check_state,
    )
    state = simulation.play()
    assert state.lifecycle.stop == "completed", state.lifecycle.detail
    check_end(state)
    check_landed(state, simulation.git)
    return simulation


BOUNDARIES = 230
"""At least as many as a team without faults has; a test says so, so that the sweep cannot miss any."""


def test_a_team_without_faults_has_as_many_boundaries_as_the_sweep_covers(tmp_path: Path) -> None:
    assert play_small(tmp_path).faults.boundaries <= BOUNDARIES


@pytest.mark.parametrize("block", range(10))
def test_a_crash_at_any_boundary_loses_nothing_and_repeats_nothing(block: int, tmp_path: Path) -> None:
    for boundary in range(1 + block, BOUNDARIES + 1, 10):
        simulation = play_small(tmp_path / str(boundary), boundary)
        assert simulation.faults.crashes <= 1
        done = Counter(
            process.effect.rsplit("/", 1)[0] + process.effect.rsplit(".", 1)[1]
            for process in simulation.machine.processes.values()
            if process.exit_code == 0
        )
        assert all(count == 1 for name, count in done.items() if name.startswith("simulated/A")), done


@pytest.mark.parametrize("block", range(8))
def test_whatever_goes_wrong_the_team_ends_and_its_history_holds(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        stop = play_seed(seed, tmp_path / str(seed)).state().lifecycle.stop
        assert stop in ("completed", "failed", "limit_reached", "aborted")


def play_seed(seed: int, folder: Path) -> Simulation:
    simulation = Simulation(
        seed,
        folder=folder,
        system=TEAM,
        spec=spec_of(seed),
        cast=unreliable,
        person=restless,
        git=partial(SimulatedGit, seed),
        check=check_state,
    )
    with named(seed):
        state = simulation.play()
        check_end(state)
        check_landed(state, simulation.git)
        assert state.lifecycle.ended
    return simulation


ALONE_PER_TEST = 100


@pytest.mark.parametrize("block", range(20))
def test_whatever_the_roles_say_in_whatever_order_the_team_ends_or_says_what_it_waits_for(block: int) -> None:
    ends = Counter(play_alone(seed) for seed in seeds(block, ALONE_PER_TEST))
    assert set(ends) <= {"completed", "failed", "limit_reached", "aborted"}
    assert ends["completed"] > ends.total() / 10, ends


def play_alone(seed: int) -> str:
    """One team under one seed without an engine, so that thousands are a matter of a minute; answers with how it ended."""
    try:
        state = play_system(
            TEAM,
            spec_of(seed),
            seed,
            ticks=random.Random(seed).choice((20, 60, 150)),
            reports=lambda effect, chance: anything(effect.id, chance),
            check_state=check_state,
        )
        check_end(state)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    return str(state.lifecycle.stop)
