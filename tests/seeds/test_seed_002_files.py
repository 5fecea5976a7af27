"""Seed 002, sentence by sentence: the files in coordination/, their fields, their lifecycle. Each test cites its lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.inputs import Resume
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.systems.team.decide.people import check_document
from agent_orchestrator.systems.team.spec import session_id
from agent_orchestrator.systems.team.status import current_phase
from agent_orchestrator.systems.team.system import TEAM
from tests.acceptance.rig import wait_until
from tests.acceptance.team_rig import TeamRig, team_of
from tests.scenarios.team_world import DATA, PM, TeamWorld, document_faults, group, working

FILES = {
    "pm_state": "pm_state.json",
    "group_status": "group_status.json",
    "orchestrator_state": "orchestrator_state.json",
    "dev_to_qa": "messages/dev_to_qa.json",
    "qa_to_techlead": "messages/qa_to_techlead.json",
    "techlead_to_dev": "messages/techlead_to_dev.json",
}


def example(name: str) -> Any:
    return json.loads((DATA / f"team_{name}_example.json").read_text("utf-8"))


def schema(name: str) -> Any:
    return json.loads((DATA / f"team_{name}_schema.json").read_text("utf-8"))


def finished() -> TeamWorld:
    world = working(group("A"), group("B"), group("C", "A"))
    for name in "ABC":
        world.completes(name)
    world.finishes()
    return world


def test_the_files_lie_where_the_seed_draws_them() -> None:
    """002:11-22."""
    assert set(finished().documents()) == {f"coordination/{path}" for path in FILES.values()}


@pytest.mark.parametrize("name", FILES)
def test_every_example_of_the_seed_is_accepted_on_reading(name: str) -> None:
    """002:126-205, 324-466, 513-549, 591-614, 661-688, 740-774: null where the schema says string included."""
    assert check_document(f"coordination/{FILES[name]}", example(name)) == []


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_is_valid_as_the_seed_prints_the_schema_and_has_no_other_fields(name: str) -> None:
    """002:32-122 and the other five schemas."""
    document = finished().file(FILES[name])
    assert document_faults(name, document) == []

    def known(value: Any, rule: Any, path: str) -> None:
        if isinstance(value, dict):
            more = rule.get("additionalProperties")
            for key, inner in value.items():
                assert key in rule.get("properties", {}) or more is not None, f"{path}.{key} is not in the seed"
                known(inner, rule.get("properties", {}).get(key, more or {}), f"{path}.{key}")
        elif isinstance(value, list):
            for one in value:
                known(one, rule.get("items", {}), f"{path}[]")

    known(document, schema(name), name)


def test_the_session_id_is_the_moment_of_the_start() -> None:
    """002:39-42: "Unique session identifier (e.g., v4_20250106_100000)"."""
    made = session_id(from_iso("2025-01-06T10:00:00Z"))
    assert made == "v4_20250106_100000"
    assert re.fullmatch(r"v4_\d{8}_\d{6}", made)


def test_the_project_managers_memory_is_kept_across_spawns() -> None:
    """002:28: "Maintains Project Manager's memory across spawns"."""
    world = working()
    world.completes("A")
    assert "Feature A" in world.prompt(PM)
    assert world.file("pm_state.json")["mode"] == "parallel"
    assert world.file("pm_state.json")["original_requirements"] in world.prompt(PM)


def test_every_task_and_group_has_its_status_from_one_state() -> None:
    """002:53-103: all_tasks, task_groups, execution_phases and the three lists of groups."""
    world = working(group("A"), group("B", "A"))
    plan = world.file("pm_state.json")
    assert [task["status"] for task in plan["all_tasks"]] == ["in_progress", "pending"]
    assert [one["status"] for one in plan["task_groups"]] == ["in_progress", "pending"]
    assert [one["status"] for one in plan["execution_phases"]] == ["in_progress", "pending"]
    assert (plan["completed_groups"], plan["in_progress_groups"], plan["pending_groups"]) == ([], ["A"], ["B"])
    world.completes("A")
    plan = world.file("pm_state.json")
    assert [one["status"] for one in plan["execution_phases"]] == ["complete", "in_progress"]
    assert (plan["completed_groups"], plan["completion_percentage"]) == (["A"], 50.0)


def test_the_time_remaining_follows_from_what_happened() -> None:
    """002:113: estimated_time_remaining_minutes."""
    world = working(group("A"), group("B", "A"))
    assert world.file("pm_state.json")["estimated_time_remaining_minutes"] == 10
    world.completes("A")
    left = world.file("pm_state.json")["estimated_time_remaining_minutes"]
    assert left < 1, "A took seconds where ten minutes were planned, and so B will"
    unknown = working(group("A", estimated_effort_minutes=None))
    assert "estimated_time_remaining_minutes" not in unknown.file("pm_state.json"), "what is not known is left out"


def test_each_group_is_tracked_in_detail() -> None:
    """002:211: "Detailed tracking for each task group"."""
    status = finished().file("group_status.json")["A"]
    assert (status["group_id"], status["group_name"], status["status"], status["current_agent"]) == (
        "A",
        "Feature A",
        "complete",
        "none",
    )
    assert status["iterations"] == {"developer": 1, "qa": 1, "tech_lead": 1}
    assert status["commits"][0].endswith(" - Work on A")
    assert status["start_time"] < status["end_time"]
    assert status["duration_minutes"] > 0
    assert status["quality_metrics"]["first_pass_approval"] is True


def test_the_orchestrators_decisions_and_state_are_tracked() -> None:
    """002:472: "Track orchestrator's decisions and workflow state"; 002:528-545 the names of decisions."""
    world = finished()
    state = world.file("orchestrator_state.json")
    assert state["decisions_log"][0] == {
        "iteration": 1, "decision": "spawn_pm_for_planning", "reasoning": "Initial planning phase",
        "timestamp": "2025-01-15T14:30:00Z",
    }  # fmt: skip
    numbers = [one["iteration"] for one in state["decisions_log"]]
    assert numbers == sorted(set(numbers))
    assert {"spawn_2_developers_parallel", "spawn_qa_expert_group_A", "merge_group_A"} <= set(world.decisions())
    assert all(one["reasoning"] for one in state["decisions_log"])


def test_the_phases_come_in_the_seeds_order() -> None:
    """002:480-493."""
    world = TeamWorld()
    seen = [world.file("orchestrator_state.json")["current_phase"]]

    def look() -> None:
        phase = world.file("orchestrator_state.json")["current_phase"]
        if phase != seen[-1]:
            seen.append(phase)

    world.planned(group("A"))
    look()
    world.develops("A")
    look()
    world.says("A", "PASS")
    look()
    world.says("A", "APPROVED")
    world.saved("A")
    world.merged("A")
    look()
    world.finishes()
    look()
    assert seen == ["pm_planning", "developer_working", "qa_testing", "tech_review", "pm_final_check", "completed"]
    empty = TEAM.fresh(world.spec, world.context)
    assert current_phase(empty) == "initialization", "before anybody was spawned"


@pytest.mark.parametrize(
    ("box", "sender", "receiver"),
    [
        ("dev_to_qa", "developer", "qa_expert"),
        ("qa_to_techlead", "qa_expert", "tech_lead"),
        ("techlead_to_dev", "tech_lead", "developer"),
    ],
)
def test_handoffs_are_messages_from_role_to_role(box: str, sender: str, receiver: str) -> None:
    """002:553, 620, 694."""
    (message, *_) = finished().file(f"messages/{box}.json")["messages"]
    assert (message["from"], message["to"]) == (sender, receiver)
    assert set(message) == set(example(box)["messages"][0])


def test_initialization_creates_folder_files_session_and_timestamps(repo: Path) -> None:
    """002:782-790; pm_state.json alone waits for the plan (contract: a required value is never faked)."""
    rig = TeamRig(repo)
    rig.plan(group("A"))
    rig.hold("pm", "plan")
    running = rig.start_team()
    run = team_of(running)
    running.wait_for("project_manager started")
    wait_until(lambda: (repo / "coordination" / "orchestrator_state.json").exists())
    assert rig.file("group_status.json") == {}
    for box in ("dev_to_qa", "qa_to_techlead", "techlead_to_dev"):
        assert rig.file(f"messages/{box}.json") == {"messages": []}
    state = rig.file("orchestrator_state.json")
    assert (state["session_id"], state["status"]) == (run, "running")
    assert state["start_time"] <= state["last_update"]
    assert not (repo / "coordination" / "pm_state.json").exists()
    rig.open("go")
    assert running.end().code == 0
    assert rig.file("pm_state.json")["session_id"] == run


def test_an_agent_gets_its_state_in_the_prompt_and_the_engine_writes_the_files() -> None:
    """002:794-815; overruled: agents do not write state (002:805-808), the engine does, from their report."""
    world = working(group("A", files=("auth.py",)))
    assert '"group_id": "A"' in world.prompt("A")
    assert '"auth.py"' in world.prompt("A")
    assert "coordination/" not in world.prompt("A"), "no agent is told to write state files"
    before = world.file("group_status.json")["A"]["status"]
    world.develops("A")
    assert (before, world.file("group_status.json")["A"]["status"]) == ("dev_working", "qa_testing")


def test_every_change_counts_the_iteration_and_sets_the_time() -> None:
    """002:819-829, 897-901, 919-926."""
    world = working(group("A"), group("B", "A"))
    first = world.file("pm_state.json")
    world.completes("A")
    second = world.file("pm_state.json")
    assert second["iteration"] > first["iteration"]
    assert second["last_update"] > first["last_update"]
    team = world.file("orchestrator_state.json")
    assert team["iteration"] >= len(team["decisions_log"])


def test_state_persists_across_interruptions() -> None:
    """002:833-847: resume capability, full audit trail."""
    world = working()
    again = world.folded()
    assert [one.path for one in TEAM.documents(again, 0)] == [one.path for one in TEAM.documents(world.state, 0)]
    assert len(world.journal) > 5
    refused = world.tell(Resume(id="x"))
    assert refused[0].why == "the run is running already"


def test_state_is_validated_before_it_is_used() -> None:
    """002:855-864; overruled for pm_state: a broken file is refused with the field, never replaced by defaults (002:905-915)."""
    world = working()
    broken = world.file("pm_state.json")
    del broken["session_id"]
    (fault,) = check_document("coordination/pm_state.json", broken)
    assert "session_id" in fault


def test_people_can_look_at_any_time(repo: Path) -> None:
    """002:937-952: cat … | jq; every file is whole, valid JSON with two spaces and a final newline."""
    rig = TeamRig(repo)
    rig.plan(group("A"))
    assert rig.team().code == 0
    for path in FILES.values():
        text = (repo / "coordination" / path).read_text()
        assert text.endswith("}\n")
        assert text.startswith('{\n  "')
        rig.file(path)
    assert rig.file("group_status.json")["A"]["status"] == "complete"
    assert rig.file("pm_state.json")["iteration"] >= 3
