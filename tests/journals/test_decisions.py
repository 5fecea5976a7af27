"""Decisions stand in the journal: another rule of today folds yesterday's journal to the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.judging import Worth
from agent_orchestrator.systems.loop import events as loop
from agent_orchestrator.systems.phases import events as phases
from agent_orchestrator.systems.phases.spec import ReviewFinding
from agent_orchestrator.systems.phases.works import REVIEW, ReviewWork
from agent_orchestrator.systems.team.events import CheckFinished, CompletionClaimed
from tests.scenarios.loop_world import UNIT, LoopWorld
from tests.scenarios.phases_world import PhasesWorld
from tests.scenarios.played import Played
from tests.scenarios.swarm_world import SwarmWorld
from tests.scenarios.team_world import PM, TeamWorld
from tests.scenarios.world import World

SMALL = Path(__file__).parents[1] / "scenarios" / "documents" / "small.md"
WRONG = Failure(kind=FailureKind.EXIT, message="no")
LATER = Failure(kind=FailureKind.RATE_LIMITED, message="later")


def interrupted_workflow() -> Played:
    world = World("steps:\n  - {id: a, agent: coder, prompt: do it, timeout: 60}\n")
    world.agent("a", failure=LATER, session="s1")
    return world


def interrupted_swarm() -> Played:
    world = SwarmWorld({"id": "a"})
    world.agent("a", failure=LATER, session="s1")
    return world


def interrupted_loop() -> Played:
    world = LoopWorld()
    world.begin()
    world.agent(UNIT, failure=LATER, session="s1")
    return world


def interrupted_phases() -> Played:
    world = PhasesWorld(SMALL.read_text("utf-8"), yes=True, timeout_s=60.0)
    world.saved("plan")
    world.agent("1.1", failure=LATER, session="s1")
    return world


@pytest.mark.parametrize("played", [interrupted_workflow, interrupted_swarm, interrupted_loop, interrupted_phases])
def test_an_attempt_goes_on_where_the_journal_says_so_whatever_its_failure(played: Callable[[], Played]) -> None:
    world = played()
    before = world.folded()
    for at, (event, when) in enumerate(world.journal):
        if getattr(event, "failure", None) == LATER:
            world.journal[at] = (msgspec.structs.replace(event, failure=WRONG), when)
    after = world.folded()
    assert world.picture(after)["doing"] == world.picture(before)["doing"]
    assert getattr(after, "current", None) == getattr(before, "current", None), "the iteration of a loop"


def test_an_iteration_brought_little_where_the_journal_says_so_whatever_its_score() -> None:
    world = LoopWorld()
    world.begin()
    for number in range(3):
        world.iterate(tail=f"error {number}")
    assert world.state.plateau == 3
    for at, (event, when) in enumerate(world.journal):
        if isinstance(event, loop.IterationFinished):
            world.journal[at] = (msgspec.structs.replace(event, score=30.0 * event.iteration), when)
    assert (world.folded().plateau, world.folded().low_deltas) == (3, 2)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (loop.TreeSaved, {"then": "confirm"}),
        (loop.CheckFinished, {"then": "tests"}),
        (loop.IterationFinished, {"then": "complete"}),
        (loop.CompletionBegan, {"then": "tests"}),
    ],
)
def test_the_next_step_of_a_loop_is_the_one_that_the_journal_names(kind: type, changes: dict[str, Any]) -> None:
    world = LoopWorld(test_command="make all-tests")
    world.begin()
    world.iterate(exit_code=0)
    at = max(at for at, (event, _) in enumerate(world.journal) if isinstance(event, kind))
    event, when = world.journal[at]
    world.journal[at:] = [(msgspec.structs.replace(event, **changes), when)]
    assert world.folded().due == changes["then"]


def test_a_loops_checkpoint_is_kept_where_the_journal_says_so() -> None:
    world = LoopWorld(checkpoint_interval=1)
    world.begin()
    world.iterate()
    assert "checkpoint=" in _said(world, loop.IterationFinished)
    world.spec = msgspec.structs.replace(world.spec, checkpoint_interval=5)
    assert len(world.folded().checkpoints) == len(world.state.checkpoints) == 1


def _said(world: Played, kind: type) -> str:
    fields = next(msgspec.to_builtins(event) for event, _ in world.journal if isinstance(event, kind))
    return " ".join(f"{name}={value}" for name, value in fields.items())


def reviewed(outer_max: int, *events: phases.PhasesEvent) -> ReviewWork:
    """A review with one finding, with these events."""
    world = PhasesWorld(SMALL.read_text("utf-8"), yes=True)
    plan = msgspec.structs.replace(world.spec.plan, outer_max=outer_max)
    world.spec = msgspec.structs.replace(world.spec, plan=plan)
    found = phases.FindingsListed(findings=(ReviewFinding(priority="P1", issue="it leaks"),))
    world.journal[:] = [(event, world.now_us) for event in (phases.ReviewStarted(), found, *events)]
    work = world.folded().works[REVIEW]
    assert isinstance(work, ReviewWork)
    return work


@pytest.mark.parametrize("then", ["pre", "execute"])
def test_a_task_begins_with_what_the_journal_says(then: str) -> None:
    world = PhasesWorld(SMALL.read_text("utf-8"), yes=True)
    world.journal[:] = [(phases.TaskStarted(task="1.1", then=then), world.now_us)]
    assert world.folded().works["1.1"].due == then


@pytest.mark.parametrize("outer_max", [1, 5])
def test_the_outer_loop_scans_again_where_the_journal_says_so(outer_max: int) -> None:
    scan = reviewed(outer_max, phases.FindingSettled(then="scan"))
    assert (scan.due, scan.iteration) == ("scan", 2)
    over = reviewed(outer_max, phases.FindingSettled(then="criteria"))
    assert (over.due, over.iteration, over.looping) == ("criteria", 1, False)


@pytest.mark.parametrize("outer_max", [1, 5])
def test_a_review_that_mended_all_goes_on_as_the_journal_says(outer_max: int) -> None:
    settled, saved = phases.FindingSettled(then="repair"), phases.TreeSaved(step=REVIEW, purpose="mend", then="scan")
    assert reviewed(outer_max, settled, saved).due == "scan"


@pytest.mark.parametrize("outer_max", [1, 5])
@pytest.mark.parametrize("then", ["repair", "unmet"])
def test_a_criterion_of_the_whole_that_fails_is_mended_where_the_journal_says_so(outer_max: int, then: str) -> None:
    checked = phases.CheckFinished(
        effect=EffectId("r/review/i1.a1.l9.global"),
        step=REVIEW,
        purpose="global",
        criterion="whole",
        command="make all",
        started_us=1,
        ended_us=2,
        exit_code=1,
        worth=Worth.FAILED,
        then=then,
    )
    work = reviewed(outer_max, phases.FindingSettled(then="criteria"), checked)
    assert work.due == then
    assert bool(work.findings) == (then == "repair")


@pytest.mark.parametrize(("worth", "reruns"), [(Worth.AGAIN, 1), (Worth.STOPPED, 0), (Worth.FAILED, 0), (None, 0)])
def test_a_teams_check_is_worth_what_the_journal_says(worth: Worth | None, reruns: int) -> None:
    world = TeamWorld("- it works (check: `make test`)\n")
    checked = CheckFinished(effect=EffectId("r/pm/i1.a1.l9.check"), step=PM, requirement=0, started_us=1, ended_us=2, worth=worth)
    world.journal += [(event, world.now_us) for event in (CompletionClaimed(evidence={}), checked)]
    assert world.folded().pm.reruns == reruns
