"""Seed 003: every field of state.json, every transition, every step of its operations. Each test cites its lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

import agent_orchestrator.systems.loop as package
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Abort, Instruct, Pause, Resume, Usage
from agent_orchestrator.systems.loop.decide.edits import check_state_document
from agent_orchestrator.systems.loop.imports import import_state
from agent_orchestrator.systems.loop.spec import loop_id, slug_of
from agent_orchestrator.systems.loop.transitions import ALLOWED, LoopStatus, refusal
from tests.scenarios.loop_world import LOOP_RUN, UNIT, LoopWorld
from tests.scenarios.world import failing

DATA = Path(__file__).parent / "data"
PUBLISHED = json.loads((Path(package.__file__).parent / "schema" / "loop_state.schema.json").read_text("utf-8"))
SEED = yaml.safe_load((DATA / "loop_state_schema.yaml").read_text("utf-8"))
EXAMPLE = json.loads((DATA / "loop_state_example.json").read_text("utf-8"))
VALIDATOR = jsonschema_rs.validator_for(PUBLISHED)


def widened(node: Any) -> Any:
    """`nullable: true` read as "or null"."""
    if isinstance(node, dict):
        read = {key: widened(value) for key, value in node.items() if key != "nullable"}
        return {**read, "type": [read["type"], "null"]} if node.get("nullable") else read
    if isinstance(node, list):
        return [widened(value) for value in node]
    return node.strip() if isinstance(node, str) else node


def running() -> LoopWorld:
    """A loop after two iterations, the third at work."""
    world = LoopWorld(timeout_minutes=60)
    world.begin(tail="Found 12 errors")
    world.iterate(tail="Found 8 errors", report={"summary": "four fewer"})
    world.iterate(tail="Found 3 errors")
    return world


def test_the_published_schema_is_the_seeds_with_nullable_read_as_or_null() -> None:
    """003:5–219."""
    assert {key: value for key, value in PUBLISHED.items() if key != "$comment"} == widened(SEED)


def test_the_seeds_own_example_is_valid_and_accepted_on_reading() -> None:
    """003:314–358."""
    assert VALIDATOR.is_valid(EXAMPLE)
    assert check_state_document(EXAMPLE) == []
    taken = import_state(EXAMPLE, "state.json")
    assert (taken.name, taken.spec.max_iterations, taken.spec.timeout_minutes) == ("ralph-fix-tests-a1b2c3d4", 200, 60)


@pytest.mark.parametrize("field", ["version", "loop_id", "status", "iteration"])
def test_a_required_field_that_is_missing_is_a_fault(field: str) -> None:
    """003:13–17."""
    document = {key: value for key, value in EXAMPLE.items() if key != field}
    assert not VALIDATOR.is_valid(document)
    assert f"{field}: is missing" in check_state_document(document)


def test_the_state_carries_exactly_the_seeds_fields_in_its_order() -> None:
    """003:19–106; the example's order: 316–358."""
    assert list(running().document()) == list(SEED["properties"])


def test_the_version_is_2() -> None:
    """003:20–24."""
    assert running().document()["version"] == "2.0.0"
    assert any("version" in fault for fault in check_state_document({**EXAMPLE, "version": "1.0.0"}))


def test_the_loop_id_is_ralph_slug_and_eight_hex_digits() -> None:
    """003:26–31."""
    made = loop_id("Fix all TypeScript errors, please!", "a1b2c3d4")
    assert re.fullmatch(SEED["properties"]["loop_id"]["pattern"], made)
    assert made == "ralph-fix-all-typescript-errors-a1b2c3d4"
    assert [slug_of(text) for text in ("---", "", "Ünïcode only: ü", "a" * 50)] == ["task", "task", "n-code-only", "a" * 30]


def test_the_seven_statuses_are_the_seeds() -> None:
    """003:33–43."""
    assert [status.value for status in LoopStatus] == SEED["properties"]["status"]["enum"]


def test_iteration_counts_those_completed() -> None:
    """003:45–48 with the contract: completed iterations, 0 before the first."""
    assert LoopWorld().document()["iteration"] == 0
    assert running().document()["iteration"] == 2


def test_task_criteria_owner_and_directory_are_as_given() -> None:
    """003:50–56, 74–76, 83–85."""
    document = LoopWorld(task="fix\nall", completion="npx tsc --noEmit passes", command="npx tsc --noEmit").document()
    assert (document["task"], document["completion_criteria"]) == ("fix\nall", "npx tsc --noEmit passes")
    assert (document["owner"], document["working_directory"]) == ("ada", "/repo")


def test_times_are_utc_in_whole_seconds_and_completed_at_is_null_until_the_end() -> None:
    """003:58–72."""
    world = running()
    document = world.document()
    assert document["started_at"] == "2025-01-15T14:30:00Z"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["last_updated"])
    assert document["completed_at"] is None
    world.iterate(exit_code=0)
    world.check_end(UNIT)
    assert world.document()["completed_at"] == world.document()["last_updated"]


def test_the_pid_is_the_drivers_and_null_when_nobody_drives() -> None:
    """003:78–81."""
    world = running()
    assert world.document()["pid"] == 4711
    world.tell(Pause(id="p", now=True))
    world.agent(UNIT, failure=failing(FailureKind.STOPPED))
    assert world.document()["pid"] is None


def test_the_configuration_has_the_seeds_fields_and_defaults() -> None:
    """003:87–88, 109–143."""
    fields = SEED["$defs"]["LoopConfiguration"]["properties"]
    defaults = {name: about.get("default") for name, about in fields.items()}
    assert LoopWorld().document()["configuration"] == defaults


@pytest.mark.parametrize("mode", ["strict", "seeded", "logged", "default"])
def test_the_execution_modes_are_the_seeds(mode: str) -> None:
    """003:140–143."""
    assert LoopWorld(execution_mode=mode).document()["configuration"]["execution_mode"] == mode


def test_every_completion_check_is_recorded_and_the_last_one_besides() -> None:
    """003:90–91, 145–181."""
    progress = running().document()["progress"]
    checks = progress["completion_checks"]
    assert [(check["iteration"], check["passed"], check["output"]) for check in checks] == [
        (0, False, "Found 12 errors"),
        (1, False, "Found 8 errors"),
        (2, False, "Found 3 errors"),
    ]
    assert progress["last_completion_check"] == checks[-1]
    assert LoopWorld().document()["progress"] == {"completion_checks": [], "last_completion_check": None}


def test_the_output_of_a_check_is_its_last_2000_characters() -> None:
    """003:164–165 with the contract."""
    world = LoopWorld()
    world.begin(tail="x" * 1_000 + "y" * 2_000)
    assert world.document()["progress"]["last_completion_check"]["output"] == "y" * 2_000


def test_the_metrics_count_what_the_seed_says() -> None:
    """003:93–94, 188–219."""
    world = running()
    world.agent(UNIT, failure=failing(FailureKind.EXIT))
    world.saved()
    world.check_end(UNIT, 1, tail="Found 3 errors")
    metrics = world.document()["metrics"]
    assert (metrics["total_iterations"], metrics["successful_iterations"], metrics["failed_iterations"]) == (3, 3, 1)
    assert isinstance(metrics["total_duration_seconds"], int)
    assert metrics["average_iteration_time_seconds"] == 3.0


def test_tokens_and_cost_are_left_out_until_they_are_known() -> None:
    """003:203–209 with the contract."""
    world = running()
    assert not {"total_tokens", "total_cost_usd"} & set(world.document()["metrics"])
    world.agent(UNIT, {}, usage=Usage(input_tokens=20, output_tokens=5, cost_usd=0.125))
    assert (world.document()["metrics"]["total_tokens"], world.document()["metrics"]["total_cost_usd"]) == (25, 0.125)


def test_the_last_checkpoint_is_a_path_or_null() -> None:
    """003:96–99, 358."""
    assert LoopWorld().document()["last_checkpoint"] is None
    assert running().document()["last_checkpoint"] == f".aiwg/ralph/loops/{LOOP_RUN}/checkpoints/iteration-002.json.gz"


def test_a_failed_loop_has_an_error_context_and_others_null() -> None:
    """003:101–106."""
    world = LoopWorld(max_iterations=1)
    assert world.document()["error_context"] is None
    world.begin()
    world.iterate(tail="1 failed")
    context = world.document()["error_context"]
    assert context["error_message"].startswith("1 of 1 iteration was made")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", context["error_timestamp"])
    assert context["recovery_attempted"] is False
    world.tell(Instruct(id="i", what="recovered", values={"by": "ralph-next-00000000"}))
    assert world.document()["error_context"]["recovery_attempted"] is True


def test_the_table_of_transitions_is_the_seeds() -> None:
    """003:222–251; `- []` means none."""
    assert {now.value: [after.value for after in ways] for now, ways in ALLOWED.items()} == {
        "running": ["paused", "completing", "aborted", "crashed", "failed"],
        "paused": ["running", "aborted"],
        "completing": ["completed", "failed", "crashed"],
        "completed": [],
        "failed": [],
        "aborted": [],
        "crashed": [],
    }


@pytest.mark.parametrize("now", list(LoopStatus))
@pytest.mark.parametrize("wanted", list(LoopStatus))
def test_every_illegal_transition_is_refused_with_both_states_and_what_is_allowed(now: LoopStatus, wanted: LoopStatus) -> None:
    """003:222–251, 266–268, 278–279."""
    why = refusal(now, wanted)
    if wanted in ALLOWED[now]:
        assert why is None
    else:
        assert why is not None
        assert f"that is {now} cannot become {wanted}" in why
        assert all(way in why for way in ALLOWED[now])


def test_creating_a_loop_makes_its_id_directory_and_state_and_registers_it() -> None:
    """003:255–262."""
    world = LoopWorld()
    assert next(iter(world.documents())) == f".aiwg/ralph/loops/{LOOP_RUN}/state.json"
    assert world.document()["status"] == "running"
    facts = world.system.summary(world.state).facts
    assert facts["state_file"] == f".aiwg/ralph/loops/{LOOP_RUN}/state.json"


def test_every_update_moves_last_updated() -> None:
    """003:264–274, 276–286."""
    world = running()
    before = world.document()["last_updated"]
    world.agent(UNIT)
    assert world.document()["last_updated"] > before


def test_a_check_that_passes_takes_the_loop_to_completing() -> None:
    """003:288–295."""
    world = running()
    world.iterate(exit_code=0)
    assert world.document()["status"] == "completing"
    assert world.document()["progress"]["last_completion_check"]["passed"] is True


def test_the_files_are_where_the_layout_says() -> None:
    """003:297–312."""
    paths = [document.path for document in running().system.documents(running().state, 0)]
    root = f".aiwg/ralph/loops/{LOOP_RUN}"
    assert paths == [
        f"{root}/state.json",
        f"{root}/analytics/analytics.json",
        f"{root}/checkpoints/iteration-001.json.gz",
        f"{root}/checkpoints/iteration-002.json.gz",
    ]


def test_pause_resume_and_abort_are_transitions_of_the_table() -> None:
    """003:366–376."""
    world = running()
    world.tell(Pause(id="p", now=True))
    world.agent(UNIT, failure=failing(FailureKind.STOPPED))
    assert world.document()["status"] == "paused"
    world.tell(Resume(id="r"))
    assert world.document()["status"] == "running"
    world.tell(Abort(id="a"))
    world.agent(UNIT, failure=failing(FailureKind.STOPPED))
    assert world.document()["status"] == "aborted"
