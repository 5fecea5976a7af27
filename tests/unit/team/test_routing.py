"""The routing table, row by row: who follows when a role says a word, and what stands in the files then."""

from __future__ import annotations

from typing import Any

import pytest

from agent_orchestrator.core.effects import AskHuman, Checkpoint, Merge, RunAgent, Wait
from agent_orchestrator.core.inputs import Instruct, TimerFired
from tests.scenarios.team_world import PM, TeamWorld, group, working

# The project manager


def test_a_plan_starts_at_most_four_developers_and_levels_are_no_barriers() -> None:
    world = working(*(group(name) for name in "ABCDE"), group("F", "A"))
    assert [world.role(name) for name in "ABCDEF"] == ["developer"] * 4 + ["nobody", "nobody"]
    assert world.decisions()[-1] == "spawn_4_developers_parallel"
    statuses = {one["id"]: one["status"] for one in world.file("pm_state.json")["task_groups"]}
    assert (statuses["A"], statuses["E"], statuses["F"]) == ("in_progress", "assigned", "pending")
    assert [one["group_ids"] for one in world.file("pm_state.json")["execution_phases"]] == [list("ABCDE"), ["F"]]
    world.completes("A")
    assert world.role("E") == "developer"
    world.completes("B")
    assert world.role("F") == "developer", "F only needs A: C and D of the phase before are still at work"


def test_everybody_is_told_how_the_work_is_divided_and_what_has_to_pass() -> None:
    world = TeamWorld(check="make test", max_parallel=1)
    assert "at most 1 developer at once" in world.prompt(PM)
    world.planned(group("A"), group("B"))
    assert "leave the rest to B (Feature B)" in world.prompt("A")
    assert "`make test` has to pass on the merged tree" in world.prompt("A")
    alone = working(group("A"))
    assert "leave the rest" not in alone.prompt("A")
    assert "on the merged tree" not in alone.prompt("A"), "there is no check"


def test_questions_go_to_a_person_and_the_answer_into_the_next_prompt() -> None:
    world = TeamWorld()
    world.says(PM, "NEEDS_CLARIFICATION", questions=["Which hash?", "How long do tokens live?"])
    effect = world.doing(PM)
    assert isinstance(effect, AskHuman)
    assert "Which hash?" in effect.question
    assert world.system.summary(world.state).status == "waiting"
    world.tell(Instruct(id=world.directive(), what="answer", values={"text": "argon2, one hour"}))
    assert world.role(PM) == "project_manager"
    assert "argon2, one hour" in world.prompt(PM)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"status": "PLANNING_COMPLETE"}, "needs `groups`"),
        ({"status": "NEEDS_CLARIFICATION"}, "needs `questions`"),
        ({"status": "PLANNING_COMPLETE", "groups": [{"id": "../up"}]}, "not a valid id"),
        ({"status": "PLANNING_COMPLETE", "groups": [{"id": "pm"}]}, "groups cannot have"),
        ({"status": "PLANNING_COMPLETE", "groups": [{"id": "A"}, {"id": "a"}]}, "names two groups"),
        ({"status": "PLANNING_COMPLETE", "groups": [{"id": "A", "depends_on": ["B"]}]}, "no other group 'B'"),
        (
            {"status": "PLANNING_COMPLETE", "groups": [{"id": "A", "depends_on": ["B"]}, {"id": "B", "depends_on": ["A"]}]},
            "A depends on B depends on A: a cycle",
        ),
        ({"status": "PLANNING_COMPLETE", "groups": [{"id": "A", "complexity": "huge"}]}, "groups[0].complexity"),
        ({"status": "PLANNING_COMPLETE", "mode": "wild", "groups": [{"id": "A"}]}, "$.mode"),
        (
            {"status": "PLANNING_COMPLETE", "groups": [{"id": "A"}], "tasks": [{"id": "T", "group_id": "Z"}]},
            "there is no group 'Z'",
        ),
    ],
)
def test_a_plan_that_cannot_be_carried_out_fails_the_attempt_with_the_field(report: dict[str, Any], said: str) -> None:
    world = TeamWorld()
    world.agent(PM, report)
    effect = world.doing(PM)
    assert isinstance(effect, Wait)
    assert said in effect.reason
    world.tell(TimerFired(effect=effect.id))
    again = world.doing(PM)
    assert isinstance(again, RunAgent)
    assert again.attempt == 2
    assert said in str(again.feedback)


def test_branches_are_the_groups_own_whatever_the_plan_says() -> None:
    world = TeamWorld(taken_branches=("main", "feature/group-A", "feature"))
    world.planned(
        group("A"), group("B", branch_name="main"), group("C", branch_name="-x"), group("D", branch_name="feature/group-A"),
    )  # fmt: skip
    branches = [one["branch_name"] for one in world.file("pm_state.json")["task_groups"]]
    assert len(set(branches)) == 4
    assert not {"main", "feature/group-A", "-x"} & set(branches)
    assert not any(branch.startswith("feature/") for branch in branches), "a branch `feature` is in the way of `feature/…`"


@pytest.mark.parametrize("name", ["HEAD", "FETCH_HEAD", "refs/heads/x", "orc", "orc/x", "a b", "x.lock", "feature/../x", "é"])
def test_a_branch_that_git_refuses_or_that_is_ours_is_named_anew(name: str) -> None:
    world = working(group("A", branch_name=name))
    assert world.state.groups["A"].branch_name.startswith("feature/group-A")


def test_more_groups_are_planned_when_the_project_manager_continues() -> None:
    world = working()
    world.completes("A")
    world.says(PM, "CONTINUE", groups=[group("B", "A")])
    assert world.role("B") == "developer"
    assert world.file("pm_state.json")["completion_percentage"] == 50.0
    world.completes("B")
    world.finishes()
    assert world.file("orchestrator_state.json")["status"] == "completed"


# Developers


def test_ready_for_qa_spawns_qa_with_a_message_and_marks_it_read() -> None:
    world = working()
    world.develops("A", unit_tests={"total": 12, "passed": 12}, notes="look at the tokens")
    assert (world.role("A"), world.status("A")) == ("qa_expert", "qa_testing")
    (message,) = world.file("messages/dev_to_qa.json")["messages"]
    assert message["status"] == "READY_FOR_QA"
    assert message["context"]["unit_tests_status"] == "12/12 passing"
    assert message["context"]["commits"] == [world.state.groups["A"].commits[0].sha]
    assert message["read"] is True
    assert "look at the tokens" in world.prompt("A")


@pytest.mark.parametrize(
    ("status", "testing"), [("READY_FOR_REVIEW", "full"), ("READY_FOR_QA", "minimal"), ("READY_FOR_QA", "none")]
)
def test_without_integration_tests_the_tech_lead_is_next(status: str, testing: str) -> None:
    world = working(testing=testing)
    world.develops("A", status)
    assert (world.role("A"), world.status("A")) == ("tech_lead", "tech_review")
    assert world.file("messages/dev_to_qa.json")["messages"] == []


def test_the_story_says_that_qa_passed_only_where_it_tested_this_round() -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "CHANGES_REQUESTED", feedback="name it better")
    world.develops("A", "READY_FOR_REVIEW")
    told = [one["reasoning"] for one in world.file("orchestrator_state.json")["decisions_log"] if "tech_lead" in one["decision"]]
    assert told == ["QA passed in group A", "Developer A ready for review"]


def test_the_story_gives_the_reason_that_brought_the_developer_back() -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "CHANGES_REQUESTED", feedback="name it better")
    world.develops("A")
    world.says("A", "FAIL", failures=["it hangs"])
    assert world.file("orchestrator_state.json")["decisions_log"][-1]["reasoning"] == "QA failed: it hangs"


def test_a_blocked_developer_is_helped_by_the_tech_lead() -> None:
    world = working()
    world.develops("A", "BLOCKED", blocker="no SMTP server")
    assert (world.role("A"), world.status("A")) == ("tech_lead", "dev_blocked")
    assert world.file("group_status.json")["A"]["blockers"] == [{"description": "no SMTP server", "resolved": False}]
    assert "no SMTP server" in world.prompt("A")
    world.says("A", "UNBLOCKED", feedback="use the mock mailer")
    assert (world.role("A"), world.status("A")) == ("developer", "dev_working")
    assert "use the mock mailer" in world.prompt("A")
    (blocker,) = world.file("group_status.json")["A"]["blockers"]
    assert blocker == {"description": "no SMTP server", "resolved": True, "resolution": "use the mock mailer"}
    (message,) = world.file("messages/techlead_to_dev.json")["messages"]
    assert (message["decision"], message["read"]) == ("unblocked", True)


def test_partial_spawns_the_same_developer_again() -> None:
    world = working()
    world.develops("A", "PARTIAL")
    assert world.role("A") == "developer"
    assert "go on where you stopped" in world.prompt("A")
    assert world.file("group_status.json")["A"]["iterations"] == {"developer": 2, "qa": 0, "tech_lead": 0}


def test_a_developer_that_is_never_done_needs_a_person() -> None:
    world = working()
    for _ in range(9):
        world.develops("A", "PARTIAL")
    world.says("A", "PARTIAL")
    assert (world.role("A"), world.status("A")) == ("AskHuman", "dev_blocked")


def test_work_that_cannot_be_saved_goes_back_with_the_reason() -> None:
    world = working()
    world.says("A", "READY_FOR_QA")
    world.saved("A", unavailable="the working tree was left on branch x instead of feature/group-A")
    assert world.role("A") == "developer"
    assert "left on branch x" in world.prompt("A")


# QA and the tech lead


def test_a_failed_qa_goes_to_the_developer_with_the_failures_and_is_told_to_the_tech_lead() -> None:
    world = working()
    world.develops("A")
    world.says("A", "FAIL", failures=["login hangs"], test_results={"integration_tests": {"total": 8, "passed": 7}})
    assert (world.role("A"), world.status("A")) == ("developer", "dev_working")
    assert "QA: login hangs" in world.prompt("A")
    (message,) = world.file("messages/qa_to_techlead.json")["messages"]
    assert (message["result"], message["test_results"]["integration_tests"], message["read"]) == ("FAIL", "7/8 passed", False)
    world.develops("A")
    world.says("A", "PASS")
    assert "Tests Failed" in world.prompt("A"), "what the tech lead was not told yet is told now"
    assert all(one["read"] for one in world.file("messages/qa_to_techlead.json")["messages"])


def test_requested_changes_go_to_the_developer_and_then_to_qa_again() -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    issue = {"priority": "high", "title": "No rate limit", "location": "auth.py:45", "fix_suggestion": "add one"}
    world.says("A", "CHANGES_REQUESTED", feedback="rate limiting is missing", issues=[issue], actionable_items=["limit it"])
    assert (world.role("A"), world.status("A")) == ("developer", "dev_working")
    for words in ("rate limiting is missing", "[high] No rate limit (auth.py:45)", "limit it"):
        assert words in world.prompt("A")
    world.develops("A")
    assert world.role("A") == "qa_expert"
    world.says("A", "PASS")
    world.says("A", "APPROVED", quality={"code_quality_score": 8.5, "security_issues_count": 0})
    status = world.file("group_status.json")["A"]
    assert [one["decision"] for one in status["tech_lead_feedback"]] == ["changes_requested", "approved"]
    assert status["quality_metrics"] == {"code_quality_score": 8.5, "security_issues_count": 0, "first_pass_approval": False}


def test_an_unknown_word_or_a_wrong_field_fails_the_attempt() -> None:
    world = working()
    world.develops("A")
    world.agent("A", {"status": "MAYBE"})
    assert "it must be one of PASS, FAIL" in world.doing("A").reason  # type: ignore[union-attr]
    world = working()
    world.agent("A", {"status": "READY_FOR_QA", "unit_tests": {"total": 3, "passed": 9}})
    assert "cannot be" in world.doing("A").reason  # type: ignore[union-attr]


# Merging


def test_an_approved_group_is_saved_and_merged_and_only_then_complete() -> None:
    world = working(check="make test")
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "APPROVED")
    assert isinstance(world.doing("A"), Checkpoint)
    world.saved("A")
    effect = world.doing("A")
    assert isinstance(effect, Merge)
    assert (effect.branch, effect.into, effect.check) == ("feature/group-A", "main", "make test")
    assert "Orc-Group: A" in effect.message
    assert world.status("A") == "tech_review"
    world.merged("A")
    assert world.status("A") == "complete"
    assert world.file("pm_state.json")["completed_groups"] == ["A"]


def test_merges_wait_in_line() -> None:
    world = working(group("A"), group("B"))
    for name in "BA":
        world.develops(name)
        world.says(name, "PASS")
        world.says(name, "APPROVED")
        world.saved(name)
    assert [world.role(name) for name in "AB"] == ["nobody", "Merge"], "B came first"
    world.merged("B")
    assert world.role("A") == "Merge"


@pytest.mark.parametrize(
    ("verdict", "fields", "told"),
    [
        ("conflict", {"detail": "both changed a.py", "conflict_text": "<<<<<<< a\n=======\n>>>>>>> b"}, "<<<<<<< a"),
        ("red", {"detail": "the check exited with 1", "tail": "1 failed"}, "1 failed"),
    ],
)
def test_a_conflict_or_a_red_check_goes_to_the_developer(verdict: str, fields: dict[str, Any], told: str) -> None:
    world = working(group("A"), group("B"))
    for name in "AB":
        world.develops(name)
        world.says(name, "PASS")
        world.says(name, "APPROVED")
        world.saved(name)
    world.merged("A", verdict, **fields)
    assert world.role("A") == "developer"
    assert told in world.prompt("A")
    assert world.role("B") == "Merge", "the next one in line does not wait for the repair"
    world.develops("A")
    assert world.role("A") == "qa_expert"


@pytest.mark.parametrize("verdict", ["moved", "interrupted"])
def test_a_merge_of_which_nothing_is_known_is_made_again_by_a_new_launch(verdict: str) -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "APPROVED")
    world.saved("A")
    first = world.doing("A").id
    world.merged("A", verdict)
    assert isinstance(world.doing("A"), Merge)
    assert world.doing("A").id != first


def test_changes_of_the_user_in_the_way_ask_a_person() -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "APPROVED")
    world.saved("A")
    world.merged("A", "held", detail="/repo is on main and has changes of its own in a.py: commit or stash them")
    effect = world.doing("A")
    assert isinstance(effect, AskHuman)
    assert "commit or stash" in effect.question
    assert world.status("A") == "tech_review"
    world.answers()
    assert isinstance(world.doing("A"), Merge)


def test_a_merge_that_is_not_possible_is_tried_again_and_then_a_person_is_asked() -> None:
    world = working()
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "APPROVED")
    world.saved("A")
    for _ in range(2):
        world.merged("A", "unavailable", detail="git is not installed")
        world.tell(TimerFired(effect=world.doing("A").id))
    world.merged("A", "unavailable", detail="git is not installed")
    assert (world.role("A"), world.status("A")) == ("AskHuman", "dev_blocked")


# Serialising


def test_groups_that_mean_to_change_the_same_files_do_not_run_together() -> None:
    world = working(group("A", files=("auth.py",)), group("B", files=("auth.py", "b.py")), group("C", files=("c.py",)))
    assert [world.role(name) for name in "ABC"] == ["developer", "nobody", "developer"]
    assert "serialise_group_B" in world.decisions()
    world.completes("C")
    assert world.role("B") == "nobody"
    assert world.decisions().count("serialise_group_B") <= 2
    world.completes("A")
    assert world.role("B") == "developer"


def test_a_file_is_the_same_however_its_path_is_written() -> None:
    world = working(group("A", files=("./src/auth.py",)), group("B", files=("src/",)))
    assert [world.role(name) for name in "AB"] == ["developer", "nobody"]


def test_a_foreseen_collision_holds_the_later_group_until_the_other_has_landed() -> None:
    world = working(group("A"), group("B"))
    world.develops("A")
    world.says("B", "READY_FOR_QA")
    world.saved("B", collides={"A": ("shared.py",)})
    assert (world.role("B"), world.status("B")) == ("nobody", "changes_requested")
    assert world.decisions()[-1] == "serialise_group_B"
    world.says("A", "PASS")
    world.says("A", "APPROVED")
    world.saved("A")
    world.merged("A")
    assert world.role("B") == "developer"
    assert "git merge main" in world.prompt("B")
    assert "shared.py" in world.prompt("B")


def test_a_group_that_may_not_run_beside_others_runs_alone() -> None:
    world = working(group("A"), group("B", can_parallel=False), group("C"))
    assert [world.role(name) for name in "ABC"] == ["developer", "nobody", "developer"]
    world.completes("A")
    assert world.role("B") == "nobody"
    world.completes("C")
    assert world.role("B") == "developer"


def test_in_simple_mode_one_group_works_at_a_time() -> None:
    world = TeamWorld()
    world.planned(group("A"), group("B"), mode="simple")
    assert [world.role(name) for name in "AB"] == ["developer", "nobody"]
    world.completes("A")
    assert world.role("B") == "developer"
