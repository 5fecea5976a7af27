"""`--stop-after-failures`: no other bead is begun, also none that only waited for its working tree."""

from __future__ import annotations

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Resume
from tests.scenarios.swarm_world import SwarmWorld

WRONG = Failure(kind=FailureKind.EXIT, message="Agent process exited with code 1")


def test_beads_that_share_a_tree_are_not_begun_either() -> None:
    beads = ({"id": name, "max_attempts": 1} for name in "abcd")
    world = SwarmWorld(*beads, max_agents=2, stop_after_failures=2)
    world.agent("a", failure=WRONG)
    world.agent("b", failure=WRONG)
    life = world.state.lifecycle
    assert (life.stop, list(world.state.failed)) == (StopReason.LIMIT_REACHED, ["a", "b"])
    assert life.detail == "stopped after 2 failures: a (exit-1), b (exit-1); 2 beads never started"
    assert [world.state.beads[name].attempt for name in "cd"] == [0, 0]
    world.tell(Resume(id="d1", changes={"retry": ["a", "b"]}))
    for name in "abcd":
        world.agent(name)
    assert {world.state.standing(name) for name in "abcd"} == {"done"}


def test_a_bead_that_was_begun_makes_all_of_its_attempts() -> None:
    world = SwarmWorld(
        {"id": "a", "repo": "/a"}, {"id": "b", "repo": "/b", "max_attempts": 1}, max_agents=2, stop_after_failures=1
    )
    world.agent("a", failure=WRONG)
    world.agent("b", failure=WRONG)
    world.timer("a")
    world.agent("a")
    assert world.state.standing("a") == "done"
