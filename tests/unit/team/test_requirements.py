"""Requirements one by one, edits by hand, and facts that stand in several files."""

from __future__ import annotations

from typing import Any

import pytest

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.inputs import Edited, HumanAnswered, Instruct
from agent_orchestrator.systems.team.events import EditRefused, StatusesEdited
from tests.scenarios.team_world import PM, TeamWorld, group, working

LISTED = "What we need:\n- log in (check: `make login`)\n- log out\n"


def finished_groups(**options: Any) -> TeamWorld:
    world = TeamWorld(LISTED, **options)
    world.planned(group("A"))
    world.completes("A")
    return world


def test_done_is_verified_by_checks_and_by_the_tech_lead() -> None:
    world = finished_groups()
    assert world.file("pm_state.json")["original_requirements"] == LISTED
    world.says(
        PM, "DONE", requirements=[{"text": "log in", "met": True, "evidence": "test_login"}, {"text": "Log out.", "met": True}]
    )
    effect = world.doing(PM)
    assert effect.command == "make login"  # type: ignore[union-attr]
    world.check_end(PM, 0)
    assert world.role(PM) == "tech_lead"
    assert "- log out" in world.prompt(PM)
    assert "- log in" not in world.prompt(PM).split("Confirm each of these")[1].split("##")[0]
    world.says(PM, "APPROVED")
    assert world.file("orchestrator_state.json")["current_phase"] == "completed"
    assert [one["met_by"] for one in world.system.details(world.state)["requirements"]] == ["check", "tech_lead"]


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ([{"text": "log in", "met": True}], "nothing is said about the requirement: log out"),
        (
            [{"text": "log in", "met": True}, {"text": "log out", "met": False, "evidence": "no time"}],
            "not met by your own words",
        ),
    ],
)
def test_done_with_open_requirements_sends_the_project_manager_back(requirements: list[Any], told: str) -> None:
    world = finished_groups()
    world.says(PM, "DONE", requirements=requirements)
    assert world.role(PM) == "project_manager"
    assert told in world.prompt(PM)
    assert world.file("orchestrator_state.json")["current_phase"] == "pm_final_check"


def test_a_red_check_or_a_no_of_the_tech_lead_sends_the_project_manager_back() -> None:
    world = finished_groups()
    world.says(PM, "DONE")
    world.check_end(PM, 1, tail="login fails")
    assert (world.role(PM), "login fails" in world.prompt(PM)) == ("project_manager", True)
    world.says(PM, "DONE")
    world.check_end(PM, 0)
    world.says(PM, "APPROVED", requirements=[{"text": "log out", "met": False, "evidence": "there is no button"}])
    assert (world.role(PM), "there is no button" in world.prompt(PM)) == ("project_manager", True)


def test_a_no_counts_in_whatever_words_the_tech_lead_names_it() -> None:
    world = TeamWorld("- log in\n- log out\n")
    world.planned(group("A"))
    world.completes("A")
    world.says(PM, "DONE")
    world.says(PM, "APPROVED", requirements=[{"text": "log in", "met": True}, {"text": "Logging out again", "met": False}])
    assert world.role(PM) == "project_manager"
    assert "the tech lead does not confirm: Logging out again" in world.prompt(PM)


def test_a_requirement_may_be_copied_with_its_mark_and_its_check() -> None:
    world = finished_groups()
    claims = [{"text": "- log in (check: `make login`)", "met": True}, {"text": "2. Log out", "met": True}]
    world.says(PM, "DONE", requirements=claims)
    assert world.role(PM) == "RunCheck"


def test_less_than_was_asked_for_needs_a_recorded_approval() -> None:
    world = finished_groups(max_review_rounds=2)
    open_one = [{"text": "log in", "met": True}, {"text": "log out", "met": False}]
    for _ in range(2):
        world.says(PM, "DONE", requirements=open_one)
    effect = world.doing(PM)
    assert isinstance(effect, AskHuman)
    assert "log out" in effect.question
    world.tell(HumanAnswered(effect=effect.id, approved=True, comments="later"))
    world.check_end(PM, 0)
    requirements = world.system.details(world.state)["requirements"]
    assert [(one["met_by"], one["evidence"]) for one in requirements][1] == ("approval", "later")
    assert "left out with a person's approval" in world.file("orchestrator_state.json")["decisions_log"][-1]["reasoning"]


def test_what_was_left_out_with_approval_is_told_and_no_longer_counts_as_a_no() -> None:
    world = TeamWorld("- log in\n- log out\n", max_review_rounds=1)
    world.planned(group("A"))
    world.completes("A")
    world.says(PM, "DONE", requirements=[{"text": "log in", "met": True}, {"text": "log out", "met": False}])
    world.answers(comments="next month")
    assert "## Left out with a person's approval\n\n- log out" in world.prompt(PM)
    world.says(PM, "APPROVED", requirements=[{"text": "log in", "met": True}, {"text": "log out", "met": False}])
    assert world.file("orchestrator_state.json")["status"] == "completed"


def test_a_refused_reduction_has_the_project_manager_go_on() -> None:
    world = finished_groups(max_review_rounds=1)
    world.says(PM, "DONE", requirements=[{"text": "log in", "met": True}])
    world.answers(approved=False, comments="do it")
    assert world.role(PM) == "project_manager"
    assert "do it" in world.prompt(PM)


def test_one_requirement_more_is_planned_while_groups_work_and_has_to_be_met() -> None:
    world = working()
    world.tell(Instruct(id=world.directive(), what="require", values={"text": "long passwords", "check": "make long"}))
    assert world.role(PM) == "project_manager"
    assert "long passwords" in world.prompt(PM)
    world.says(PM, "PLANNING_COMPLETE", groups=[group("B")])
    assert world.role("B") == "developer"
    assert world.file("pm_state.json")["original_requirements"].endswith("long passwords")
    world.completes("A")
    world.completes("B")
    world.says(PM, "DONE")
    assert world.doing(PM).command == "make long"  # type: ignore[union-attr]


def test_one_requirement_more_during_the_final_check_stops_it() -> None:
    world = working()
    world.completes("A")
    old = world.doing(PM).id
    world.tell(Instruct(id=world.directive(), what="require", values={"text": "one more"}))
    assert world.doing(PM).id != old
    assert "Plan groups for what was asked for since" in world.prompt(PM)
    world.says(PM, "PLANNING_COMPLETE", groups=[])
    world.finishes()
    assert world.state.lifecycle.ended


# Edits and everything at once


def test_the_status_of_groups_and_tasks_may_be_edited_by_hand() -> None:
    world = working(group("A"), group("B", "A"))
    document = world.file("pm_state.json")
    document["all_tasks"][1]["status"] = "in_progress"
    (event, *_) = world.tell(Edited(path="coordination/pm_state.json", document=document))
    assert event == StatusesEdited(groups={}, tasks={"TB": "in_progress"})
    status = world.file("group_status.json")
    status["A"]["status"] = "waiting_qa"
    world.tell(Edited(path="coordination/group_status.json", document=status))
    assert world.role("A") == "qa_expert"


def test_an_edit_passes_no_verdict() -> None:
    world = working(group("A"), group("B", "A"))
    document = world.file("pm_state.json")
    document["task_groups"][0]["status"] = "complete"
    document["all_tasks"][1]["status"] = "complete"
    (event,) = world.tell(Edited(path="coordination/pm_state.json", document=document))
    assert isinstance(event, EditRefused)
    assert [problem.partition(":")[0] for problem in event.problems] == ["A.status", "all_tasks"]
    for status in ("waiting_review", "tech_review", "complete"):
        edited = world.file("group_status.json")
        edited["A"]["status"] = status
        (event,) = world.tell(Edited(path="coordination/group_status.json", document=edited))
        assert isinstance(event, EditRefused), status
    assert world.role("A") == "developer"


def test_an_edit_with_a_fault_is_refused_with_the_field() -> None:
    world = working()
    document = world.file("pm_state.json")
    document["task_groups"][0]["status"] = "finished"
    (event,) = world.tell(Edited(path="coordination/pm_state.json", document=document))
    assert isinstance(event, EditRefused)
    assert "task_groups[0].status" in event.problems[0]
    assert world.system.faults("coordination/pm_state.json", document)


def test_derived_files_are_simply_written_again() -> None:
    world = working()
    document = world.file("orchestrator_state.json")
    document["total_spawns"] = 99
    assert world.tell(Edited(path="coordination/orchestrator_state.json", document=document)) == []


def test_every_fact_that_stands_in_two_files_is_the_same_in_both() -> None:
    world = working(group("A"), group("B"), group("C", "A"))
    world.completes("A")
    world.develops("B")
    plan, groups, team = (world.file(f"{name}.json") for name in ("pm_state", "group_status", "orchestrator_state"))
    assert plan["completed_groups"] == [name for name, one in groups.items() if one["status"] == "complete"] == ["A"]
    assert plan["in_progress_groups"] == ["B", "C"]
    assert plan["completion_percentage"] == 33.3
    assert {one["group_id"]: one["agent_type"] for one in team["active_agents"]} == {
        name: one["current_agent"] for name, one in groups.items() if one["current_agent"] != "none"
    }
    assert team["current_phase"] == "developer_working", "the least advanced of B (in QA) and C (with its developer)"
    assert plan["session_id"] == team["session_id"]


def test_message_ids_are_their_second_and_count_within_it() -> None:
    world = working(group("A"), group("B"))
    world.says("A", "READY_FOR_QA")
    world.says("B", "READY_FOR_QA")
    first = world.doing("A")
    world.saved("A")
    world.now_us -= 1_000_000
    world.saved("B")
    assert first is not None
    ids = [one["id"] for one in world.file("messages/dev_to_qa.json")["messages"]]
    assert ids[1] == f"{ids[0]}_2"
    assert ids[0].startswith("msg_20250115_1430")
