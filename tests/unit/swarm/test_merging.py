"""A merge in a run that has ended is a merge and nothing else."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Abort, CheckpointEnded, MergeEnded, MergeVerdict, Resume
from tests.scenarios.swarm_world import SwarmWorld


@pytest.mark.parametrize("again", [False, True])
def test_a_merge_in_an_aborted_run_starts_no_other_bead_and_it_ends_as_before(again: bool) -> None:
    world = SwarmWorld({"id": "a", "branch": "w/a"}, {"id": "b", "branch": "w/b"}, {"id": "c", "branch": "w/c"}, max_agents=1)
    world.agent("a")
    world.tell(Abort(id="d1", reason="enough"))
    world.agent("b", failure=Failure(kind=FailureKind.STOPPED, message="stopped"), exit_code=None)
    assert (world.state.lifecycle.stop, world.state.standing("c")) == (StopReason.ABORTED, "waiting")
    world.tell(Resume(id="d2", changes={"merge": ["a"], "into": "main"}))
    assert [effect.unit for effect in world.state.doing] == ["a"]
    world.tell(CheckpointEnded(effect=world.doing("a").id, commit="1" * 40))
    if again:
        world.tell(Resume(id="d3", changes={"retry": ["b"]}))
        assert {"b", "c"} & {effect.unit for effect in world.state.doing}, "what a person tries again goes on as ever"
        return
    world.tell(MergeEnded(effect=world.doing("a").id, verdict=MergeVerdict.LANDED, commit="2" * 40))
    life = world.state.lifecycle
    assert (life.ended, life.stop, life.detail) == (True, StopReason.ABORTED, "enough")
    assert world.state.standing("c") == "waiting"
