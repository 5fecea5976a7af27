"""State files that came from elsewhere, sloppy ones included, and successors."""

from __future__ import annotations

from typing import Any

import pytest

from agent_orchestrator.core.events import Ended, Paused
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.decide.edits import import_state
from agent_orchestrator.systems.loop.spec import Carried, Tried
from tests.scenarios.loop_world import LoopWorld


def test_a_sloppy_file_is_taken_over_and_what_was_changed_is_said() -> None:
    document: dict[str, Any] = {
        "loop_id": "not an id",
        "task": "old",
        "completionPromise": "make",
        "status": "running",
        "iteration": "three",
        "startedAt": "$START",
        "maxIterations": 0,
        "progress": {"completion_checks": [None, {"iteration": 1, "timestamp": "2026-02-02T21:03:00Z", "passed": False}]},
    }
    taken = import_state(document, "current-loop.json")
    assert (taken.loop, taken.spec.task, taken.spec.completion, taken.spec.max_iterations) == (None, "old", "make", 200)
    assert isinstance(taken.facts[1], Paused)
    said = "; ".join(taken.notes)
    for part in ("loop_id: 'not an id'", "iteration: 'three'", "max_iterations: 0", "was running, is paused", "left out"):
        assert part in said


@pytest.mark.parametrize(("status", "stop"), [("completed", "completed"), ("aborted", "aborted"), ("crashed", "failed")])
def test_a_file_of_an_ended_loop_stays_ended(status: str, stop: str) -> None:
    taken = import_state({"task": "x", "completion": "y", "status": status}, "state.json")
    assert isinstance(taken.facts[1], Ended)
    assert taken.facts[1].stop == stop


@pytest.mark.parametrize("document", [[], {"task": "x"}, {"completion": "y"}, {"task": 1, "completion": "y"}])
def test_a_file_without_a_task_or_a_criterion_is_refused(document: Any) -> None:
    with pytest.raises(InvalidDocument):
        import_state(document, "state.json")


def test_a_successor_counts_on_and_knows_what_was_tried() -> None:
    carried = Carried(
        loop="ralph-old-00000000",
        iteration=4,
        tried=(Tried(iteration=4, passed=False, summary="mended the lexer", error="1 failed"),),
        learnings=("the parser is fine",),
        check_output="1 failed",
    )
    world = LoopWorld(carried=carried)
    assert world.document()["iteration"] == 4
    world.begin(tail="1 failed")
    assert "- iteration 4: mended the lexer (the check failed: 1 failed)" in world.prompt
    assert "- the parser is fine" in world.prompt
    assert "iteration 5 of at most 200" in world.prompt
