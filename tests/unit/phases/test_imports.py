"""State files of phased runs in the spellings that are found in the wild, and generated variations of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.phases.documents import state_document
from agent_orchestrator.systems.phases.imports import ImportedPhases, import_state
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.system import PHASES
from tests.acceptance.phases_rig import SMALL
from tests.unit.variations import example, find_unsaid, vary

NOW_US = from_iso("2027-01-01T00:00:00Z")
SPEC = PhasesSpec(
    document="/repo/task.md",
    plan=parse_document(SMALL, "task.md").plan,
    agents={"": AgentChoice(name="command")},
    branch="phases/small",
)
CONTEXT = Context(run=RunId("c0ffee00"), home="/repo", workdir="/repo", created_us=NOW_US)


def take(document: object) -> ImportedPhases:
    return import_state(document, "agent-state.json", SPEC, CONTEXT, "head")


def print_out(taken: ImportedPhases) -> Any:
    """Give the state file of the run that a file became."""
    state: PhasesState = PHASES.fresh(taken.spec, CONTEXT)
    for event in (*PHASES.begin(taken.spec, CONTEXT), *taken.facts):
        PHASES.evolve(state, event, NOW_US)
    return msgspec.to_builtins(state_document(state))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=5,
)
TIMES = st.sampled_from(["2026-01-15T12:00:00Z", "2026-01-15T12:00:00+01:00", "$START", 1768478400, None, "later"])
WORDS = st.sampled_from(["completed", "SUCCESS", "Done ✅", "executing", "in-progress", "failed", "planning", "odd", None, 7])
TASKS = st.sampled_from(["1.1", "1.2", "1.1: First", "✅ Task 1.2: Second", "Second", "9.9", "Setup", 1.1])
ENTRY_KEYS = ["task", "id", "taskId", "name", "completed", "completedAt", "iterations", "cost", "files", "criteria", "phase"]


def objects(keys: list[str], values: st.SearchStrategy[Any] = JSON) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys) | st.text("xyz_", min_size=1, max_size=4), values, max_size=5)


ENTRIES = st.lists(
    TASKS | st.fixed_dictionaries({"task": TASKS}, optional={"name": st.text(max_size=5)}) | objects(ENTRY_KEYS), max_size=3
)
HEAD = st.fixed_dictionaries(
    {}, optional={"status": WORDS, "startTime": TIMES, "end_time": TIMES, "taskDoc": st.text(max_size=5), "x_head": JSON}
)
BOUNDS = objects(["max_iterations_per_task", "maxCost", "max_time", "max_time_hours", "cost_so_far", "elapsed_time", "warnings"])
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "supervisor": JSON | objects(["enabled", "checksPerformed", "last_check", "interventions"]),
    "completed_tasks": ENTRIES | JSON,
    "completedTasks": ENTRIES,
    "pending_tasks": ENTRIES | JSON,
    "tasks": ENTRIES,
    "active_agents": JSON,
    "safety_bounds": BOUNDS | JSON,
    "learnings": JSON | st.lists(st.text(max_size=5), max_size=2),
    "milestones": JSON,
    "checkpoints": JSON | st.lists(objects(["task", "git_sha", "state_snapshot"]), max_size=2),
    "x_top": JSON,
}
NESTED = st.fixed_dictionaries({"orchestrator": HEAD}, optional=PARTS)
FLAT = st.builds(lambda head, parts: {**head, **parts}, HEAD, st.fixed_dictionaries({}, optional=PARTS))
FILES = NESTED | FLAT


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(FILES)
def test_any_file_is_a_run_or_refused_and_every_field_is_accounted_for(file: dict[str, Any]) -> None:
    try:
        taken = take(file)
    except InvalidDocument:
        return
    told = [re.split(r"[.\[: ]", line)[0] for line in taken.account.all]
    assert {name for name in file if name != "orchestrator"} <= set(told), taken.account.all
    for name in file.get("orchestrator") or {}:
        assert any(line.startswith(f"orchestrator.{name}") for line in taken.account.all), (name, taken.account.all)


@settings(deadline=None, max_examples=75, suppress_health_check=list(HealthCheck))
@given(FILES)
def test_a_run_that_is_printed_and_imported_again_is_the_same(file: dict[str, Any]) -> None:
    try:
        taken = take(file)
    except InvalidDocument:
        return
    check_stable(taken)


@settings(deadline=None, max_examples=75, suppress_health_check=list(HealthCheck))
@given(vary(example("agent_state_example.json")))
def test_every_field_may_be_odd_and_each_is_accounted_for(file: dict[str, Any]) -> None:
    try:
        taken = take(file)
    except InvalidDocument:
        return
    assert find_unsaid(file, taken.account, whole=r"(?i)success.?criteria.?met$") == []
    check_stable(taken)


def test_an_orchestrator_that_stands_twice_in_two_spellings_is_read_once_and_the_other_is_said() -> None:
    taken = take({**example("agent_state_example.json"), "Orchestrator": {"current_phase": 9}})
    assert "Orchestrator (orchestrator is used)" in taken.account.lines("left")


def check_stable(taken: ImportedPhases) -> None:
    first = print_out(taken)
    again = print_out(take(first))
    for printed in (first, again):
        printed["safety_bounds"].pop("warnings")  # that it was imported is said once more
    assert again == first


AUTOMATED = {
    "workflow": "improvements",
    "mode": "automated",
    "phase": "setup",
    "iteration": 1,
    "max_iterations": 50,
    "budget_consumed": 0,
    "budget_limit": 20,
    "time_started": "2026-01-28T00:00:00Z",
    "current_task": "Setup: Create a branch",
    "completed_tasks": [],
    "pending_tasks": ["1.1: First of all", "1.2: Then this"],
    "phase_2_triggered": False,
}
PLANNED = {
    "orchestrator": {"status": "planning", "task_doc": "t.md", "current_phase": 0, "start_time": "2026-01-16T13:00:00Z"},
    "supervisor": {"enabled": True, "conflicts_detected": 0, "interventions": []},
    "active_agents": [],
    "completed_tasks": [],
    "pending_tasks": ["1.1: First of all", "1.2: Then this"],
    "safety_bounds": {"max_iterations_per_task": 30, "max_cost": 10, "max_time_hours": 2},
    "learnings": [],
}
"""The shapes of files in public repositories, their words changed."""


@pytest.mark.parametrize(("file", "cost"), [(AUTOMATED, 20), (PLANNED, 10)])
def test_the_shapes_of_public_files_are_understood(file: dict[str, Any], cost: float) -> None:
    taken = take(file)
    printed = print_out(taken)
    assert (printed["orchestrator"]["status"], taken.budget.run.cost_usd) == ("planning", cost)
    assert [one["name"] for one in printed["pending_tasks"]] == ["First of all", "Then this"]
    assert find_unsaid(file, taken.account) == []


@pytest.mark.parametrize("word", ["completed", "complete", "SUCCESS", "Done ✅", "SUCCESS - nothing is left", "Finished"])
@pytest.mark.parametrize("nested", [True, False])
def test_what_is_done_stays_done_in_all_words(word: str, nested: bool) -> None:
    head = {"status": word}
    done = {"completedTasks": ["1.1: First", {"id": "1.2", "title": "Second"}]}
    printed = print_out(take({"orchestrator": head, **done} if nested else {**head, **done}))
    assert printed["orchestrator"]["status"] == "completed"
    assert [one["task"] for one in printed["completed_tasks"]] == ["1.1", "1.2"]
    assert printed["pending_tasks"] == []


@pytest.mark.parametrize(
    "tasks",
    [
        [{"id": "1.1", "status": "done"}, {"id": "1.2", "status": "open"}],
        {"1.1": {"status": "completed"}, "1.2": {"status": "pending"}},
        ["✅ 1.1: First", "1.2: Second"],
    ],
)
def test_tasks_in_one_list_are_done_by_their_own_status(tasks: object) -> None:
    printed = print_out(take({"tasks": tasks}))
    assert [one["task"] for one in printed["completed_tasks"]] == ["1.1"]
    assert [one["task"] for one in printed["pending_tasks"]] == ["1.2"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"agente": "Camilo", "issue": "74"}, "it is no state of phases (it has agente, issue)"),
        ({"lastUpdated": "2026", "teams": {}, "checks": {}}, "it has no orchestrator and lists no tasks"),
        ({}, "it is empty"),
    ],
)
def test_a_file_about_something_else_is_refused_by_what_it_has(document: object, says: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        take(document)
    assert says in str(refused.value)
