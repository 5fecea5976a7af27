"""State files that came from elsewhere, sloppy ones included, and successors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.events import Paused
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.imports import import_state
from agent_orchestrator.systems.loop.spec import Carried, Tried, named_loop
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.system import LOOP
from tests.scenarios.loop_world import LoopWorld

NOW_US = from_iso("2026-02-03T00:00:00Z")


def taken_over(file: dict[str, Any]) -> LoopState:
    """The loop made of a file, as it is right after it was taken over."""
    taken = import_state({"task": "x", "completion": "y", **file}, "state.json")
    state: LoopState = LOOP.fresh(taken.spec, Context(run=RunId("ralph-x-00000000"), home="/h", workdir="/h", created_us=NOW_US))
    for event in taken.facts:
        LOOP.evolve(state, event, NOW_US)
    return state


def imported(file: dict[str, Any]) -> Any:
    """Its state.json."""
    return msgspec.to_builtins(next(iter(LOOP.documents(taken_over(file), NOW_US))).body)


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
    assert (taken.spec.task, taken.spec.completion, taken.spec.max_iterations) == ("old", "make", 200)
    assert taken.name == named_loop("not an id")
    assert import_state({**document, "iteration": 9}, "current-loop.json").name == taken.name
    assert (isinstance(taken.facts[1], Paused), taken.left) == (True, ())
    said = "; ".join(taken.notes)
    for part in ("loop_id: 'not an id'", "iteration: 'three'", "maxIterations: 0", "was running, is paused", "left out"):
        assert part in said


@pytest.mark.parametrize("status", ["completed", "aborted", "failed", "crashed"])
def test_a_file_of_an_ended_loop_stays_ended_as_it_was(status: str) -> None:
    file = {
        "status": status,
        "started_at": "2026-02-02T21:00:00Z",
        "completed_at": "2026-02-02T21:05:30Z",
        "error_context": {"error_message": "boom", "error_timestamp": "2026-02-02T21:05:30Z"},
    }
    document = imported(file)
    assert (document["status"], document["last_updated"]) == (status, "2026-02-02T21:05:30Z")
    assert document["completed_at"] == ("2026-02-02T21:05:30Z" if status == "completed" else None)
    assert document["metrics"]["total_duration_seconds"] == 330
    told = {"error_message": "boom", "error_timestamp": "2026-02-02T21:05:30Z", "recovery_attempted": False}
    assert document["error_context"] == (told if status in ("failed", "crashed") else None)


def test_what_was_counted_before_is_kept() -> None:
    counted = {
        "successful_iterations": 4,
        "failed_iterations": 1,
        "total_tokens": 25000,
        "total_cost_usd": 0.125,
    }
    metrics = imported({"iteration": 5, "status": "paused", "metrics": counted})["metrics"]
    del metrics["total_duration_seconds"], metrics["average_iteration_time_seconds"]
    assert metrics == {
        "total_iterations": 5,
        "successful_iterations": 4,
        "failed_iterations": 1,
        "total_tokens": 25000,
        "total_cost_usd": 0.125,
    }


def test_the_time_in_which_nobody_drove_it_is_not_the_loops() -> None:
    file = {"status": "running", "started_at": "2020-01-01T00:00:00Z", "configuration": {"timeout_minutes": 60}}
    assert taken_over(file).time_left_s(NOW_US) == 3600
    assert taken_over({**file, "metrics": {"total_duration_seconds": 330}}).time_left_s(NOW_US) == 3270


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"loop_id": f"ralph-{'a' * 300}-00000000"}, "is not of the form ralph-NAME-8 hex digits; the loop is ralph-aaa"),
        ({"loop_id": 7}, "loop_id: 7 is not an id; one is made"),
        ({"started_at": "0001-01-01T00:00:00+23:00"}, "started_at: '0001-01-01T00:00:00+23:00' is not usable, it is left out"),
    ],
)
def test_what_no_loop_can_have_is_replaced_and_said(field: dict[str, Any], said: str) -> None:
    taken = import_state({"task": "x", "completion": "y", **field}, "state.json")
    assert said in "; ".join(taken.notes)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "it is not a JSON object but a list"),
        ({}, "no task is in it (it is empty)"),
        ({"task": "x"}, "a task, but no criterion, status or iteration is in it (it has task)"),
        ({"completion": "y"}, "no task is in it (it has completion)"),
        ({"task": 1, "completion": "y"}, "it is about no loop, its task is 1"),
        ({"task": None, "completion": None, "status": "IDLE"}, "it is about no loop, its task is None"),
    ],
)
def test_a_file_that_is_about_no_loop_is_refused_with_what_stands_in_it(document: Any, said: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        import_state(document, "old/state.json")
    assert str(refused.value) == f"old/state.json is not a valid loop state: {said}."


def test_a_file_without_a_criterion_is_done_when_a_person_says_so() -> None:
    taken = import_state({"task": "x", "status": "paused"}, "state.json")
    assert (taken.spec.completion, taken.criteria) == ("the task is done", ())


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
