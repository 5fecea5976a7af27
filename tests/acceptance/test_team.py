"""Teams as a user runs them: the seed's own example from plan to completed, and what people do beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import ROOT
from tests.acceptance.team_rig import TeamRig, team_of
from tests.scenarios.team_world import DATA, REQUIREMENTS, document_faults, group

JWT = [
    group("A", files=("auth.py", "middleware.py"), tasks=["T1", "T2"], name="JWT Authentication System"),
    group("B", files=("users.py",), tasks=["T3"], name="User Registration"),
    group("C", "A", files=("password_reset.py",), tasks=["T4"], name="Password Reset"),
]
GREEN = "! grep -rn BROKEN --include=*.py ."


@pytest.fixture
def rig(repo: Path) -> TeamRig:
    made = TeamRig(repo)
    made.plan(*JWT)
    return made


def shape(value: Any) -> Any:
    """The fields of a document, whatever stands in them."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__ if not isinstance(value, int | float) or isinstance(value, bool) else "number"


def fields(example: Any, written: Any) -> None:
    """Every field of the seed's example is in what was written, of the same kind, in the same order; lists may be empty."""
    if isinstance(example, dict):
        assert [key for key in example if key in written] == [key for key in written if key in example]
        for key in example:
            if example[key] is not None:
                fields(example[key], written[key])
    elif isinstance(example, list):
        for one in written if example else []:
            fields(example[0], one)
    else:
        assert shape(example) == shape(written)


def test_the_seeds_example_runs_from_plan_to_completed(rig: TeamRig) -> None:
    rig.says("A.qa.1", status="FAIL", failures=["tokens never expire"], test_results={"e2e_tests": {"total": 3, "passed": 2}})
    issue = {
        "priority": "high",
        "title": "Missing rate limiting",
        "location": "auth.py:45",
        "description": "none",
        "fix_suggestion": "add",
    }
    rig.says("B.review.1", status="CHANGES_REQUESTED", feedback="no rate limiting", issues=[issue], actionable_items=["add it"])
    rig.says("C.develop.1", status="BLOCKED", blocker="there is no mail server")
    done = rig.team("--check", GREEN)
    assert done.code == 0, done
    turns = rig.turns()
    assert turns[0] == "pm plan 1"
    assert sorted(turns[1:3]) == ["A develop 1", "B develop 1"]
    for turn in (
        "A develop 2",
        "A qa 2",
        "B develop 2",
        "B qa 2",
        "B review 2",
        "C consult 1",
        "C develop 2",
        "pm final 2",
        "pm confirm 1",
    ):
        assert turns.count(turn) == 1, turns
    assert "tokens never expire" in rig.prompt("A", "develop", 2)
    assert "no rate limiting" in rig.prompt("B", "develop", 2)
    assert "Use the mock mailer" in rig.prompt("C", "develop", 2)
    state = rig.file("orchestrator_state.json")
    assert (state["status"], state["current_phase"], state["active_agents"]) == ("completed", "completed", [])
    assert state["total_spawns"] == len(turns)
    story = rig.decisions()
    for decision in (
        "spawn_pm_for_planning",
        "spawn_2_developers_parallel",
        "spawn_qa_expert_group_A",
        "merge_group_A",
        "complete_run",
    ):
        assert decision in story
    assert story.index("merge_group_A") < story.index("spawn_developer_group_C")
    groups = rig.file("group_status.json")
    assert [one["status"] for one in groups.values()] == ["complete"] * 3
    assert groups["A"]["iterations"] == {"developer": 2, "qa": 2, "tech_lead": 1}
    assert groups["C"]["blockers"] == [
        {"description": "there is no mail server", "resolved": True, "resolution": "Use the mock mailer"}
    ]
    assert rig.git("status", "--porcelain") == ""
    assert rig.git("log", "--first-parent", "--format=%s").splitlines()[0].startswith("Merge group C")
    assert (rig.repo / "c.py").exists(), "the user's checkout was brought along"


def test_the_files_have_the_fields_of_the_seeds_examples(rig: TeamRig) -> None:
    issue = {"priority": "high", "title": "x", "location": "auth.py:45", "description": "y", "fix_suggestion": "z"}
    rig.says("A.review.1", status="CHANGES_REQUESTED", feedback="no", issues=[issue], actionable_items=["add it"])
    assert rig.team().code == 0
    for name in ("pm_state", "group_status", "orchestrator_state"):
        example = json.loads((DATA / f"team_{name}_example.json").read_text())
        written = rig.file(f"{name}.json")
        assert set(written) == set(example) or name == "group_status"
        fields(example, {key: written[key] for key in example})
    for name in ("dev_to_qa", "qa_to_techlead", "techlead_to_dev"):
        example = json.loads((DATA / f"team_{name}_example.json").read_text())
        fields(example, rig.file(f"messages/{name}.json"))


def test_two_groups_that_touch_the_same_lines_end_in_one_green_branch(rig: TeamRig) -> None:
    rig.plan(group("A", files=("a.txt",)), group("B", files=("b.txt",)))
    commit = "git add -A; git -c user.name=D -c user.email=d@example.com commit -q -m work"
    rig.do("develop", f'echo "$STEP_ID" >shared.txt; {commit}; echo \'{{"status": "READY_FOR_REVIEW"}}\' | report')
    merge = "git merge -q main >/dev/null 2>&1; printf 'A\\nB\\n' >shared.txt; git add -A; "
    merge += "git -c user.name=D -c user.email=d@example.com commit -q -m merged"
    rig.do("B.develop.2", f'{merge}; echo \'{{"status": "READY_FOR_REVIEW"}}\' | report')
    rig.do("A.develop.2", f'{merge}; echo \'{{"status": "READY_FOR_REVIEW"}}\' | report')
    done = rig.team("--check", "test -s shared.txt")
    assert done.code == 0, done
    assert (rig.repo / "shared.txt").read_text() == "A\nB\n"
    assert len([turn for turn in rig.turns() if turn.endswith("develop 2")]) == 1


def test_a_red_merge_goes_back_and_the_target_is_green_at_every_commit(rig: TeamRig) -> None:
    rig.plan(group("A"), group("B"))
    rig.do("B.develop.1", 'echo BROKEN >b.py; echo \'{"status": "READY_FOR_QA"}\' | report')
    rig.do("B.develop.2", 'echo mended >b.py; echo \'{"status": "READY_FOR_QA"}\' | report')
    done = rig.team("--check", GREEN)
    assert done.code == 0, done
    assert "exited with 1 on the merged tree" in rig.prompt("B", "develop", 2)
    for commit in rig.git("log", "--first-parent", "--format=%H").splitlines():
        assert "BROKEN" not in rig.git("grep", "-h", "", commit), f"{commit} is red"


def test_changes_of_the_user_in_the_way_make_the_merge_wait_for_a_person(rig: TeamRig) -> None:
    rig.plan(group("A"))
    rig.do("develop", 'echo theirs >README.md; echo \'{"status": "READY_FOR_REVIEW"}\' | report')
    (rig.repo / "README.md").write_text("mine\n")
    done = rig.team("--no-wait")
    assert done.code == 4, done
    assert "commit or stash" in done.out
    assert (rig.repo / "README.md").read_text() == "mine\n"
    rig.git("checkout", "--", "README.md")
    assert rig.ask("team", "approve").code == 0
    assert rig.orc("resume").code == 0
    assert (rig.repo / "README.md").read_text() == "theirs\n"


def test_what_earlier_rounds_left_open_is_in_the_prompt_once_and_at_feedback_path(rig: TeamRig) -> None:
    rig.plan(group("A"))
    rig.says("A.qa.1", status="FAIL", failures=["tokens never expire"])
    keep = 'cp "$FEEDBACK_PATH" "$here/feedback.json"; '
    (rig.side / "do.A.develop.2").write_text(keep + (rig.side / "do.develop").read_text())
    assert rig.team().code == 0
    kept = json.loads((rig.side / "feedback.json").read_text())
    assert kept == {"entries": [{"found_by": "qa", "points": ["tokens never expire"]}]}
    assert rig.prompt("A", "develop", 2).count("tokens never expire") == 1


def test_a_question_waits_with_exit_code_4_and_is_answered(rig: TeamRig) -> None:
    rig.says("pm.plan.1", status="NEEDS_CLARIFICATION", questions=["Which database?", "Which port?"])
    done = rig.team("--no-wait")
    assert done.code == 4, done
    assert "waiting for an answer: Which database? Which port?" in done.out
    for told in (done.out, rig.ask("team", "status").out, rig.ask("status", team_of(done)).out):
        assert "orc team answer" in told
        assert "orc approve" not in told
    said = rig.ask("team", "answer", "sqlite")
    assert said.code == 0, said
    for again in (("team", "answer", "postgres"), ("approve",)):
        refused = rig.ask(*again)
        assert (refused.code, "has an answer already" in refused.err) == (2, True), refused
    resumed = rig.orc("resume")
    assert resumed.code == 0, resumed
    assert re.search(r"answered by .+ \(.+\): sqlite", resumed.out), resumed
    assert "Answer: sqlite" in rig.prompt("pm", "plan", 2)


def test_a_repository_has_one_team_at_a_time_and_ended_files_are_archived(rig: TeamRig) -> None:
    rig.hold("pm", "plan")
    first = rig.start_team()
    run = team_of(first)
    refused = rig.ask(*rig.team_arguments())
    assert refused.code == 2
    assert run in refused.err
    rig.open("go")
    assert first.end().code == 0
    again = rig.team(requirements="something else")
    assert again.code == 0, again
    archived = rig.repo / "coordination" / "archive" / run
    assert sorted(path.name for path in archived.iterdir()) == [
        "group_status.json", "messages", "orchestrator_state.json", "pm_state.json",
    ]  # fmt: skip
    assert json.loads((archived / "pm_state.json").read_text())["session_id"] == run
    plans = [one["branch_name"] for one in rig.file("pm_state.json")["task_groups"]]
    assert plans == ["feature/group-A", "feature/group-B", "feature/group-C"], "merged branches are gone, their names are free"


def test_one_requirement_more_while_it_runs(rig: TeamRig) -> None:
    rig.plan(group("A"))
    rig.hold("A", "develop")
    running = rig.start_team()
    running.wait_for("spawn_developer_group_A")
    rig.says("pm.plan.2", status="PLANNING_COMPLETE", groups=[group("Z")])
    added = rig.ask("team", "add", "a changelog", "--check", "test -f z.py")
    assert added.code == 0, added
    running.wait_for("spawn_developer_group_Z")
    rig.open("go")
    assert running.end().code == 0
    assert "check_requirement_2" in rig.decisions()
    assert rig.file("pm_state.json")["original_requirements"].endswith("a changelog")


def test_status_and_messages_tell_people_and_scripts(rig: TeamRig) -> None:
    done = rig.team()
    run = team_of(done)
    shown = rig.ask("team", "status")
    assert (shown.code, run in shown.out, "complete_run" in shown.out) == (0, True, True)
    assert shown.out.splitlines()[0] == f"team {run}  completed  3/3 groups"
    facts = rig.ask("team", "status", "--json").json
    assert facts["files"]["coordination/pm_state.json"] == rig.file("pm_state.json")
    told = rig.ask("team", "messages", "--json").json
    assert len(told["dev_to_qa"]) == 3
    unread = rig.ask("team", "messages", "--unread").out
    assert "approved" in unread
    assert "READY_FOR_QA" not in unread
    watched = rig.ask("team", "watch")
    assert (watched.code, "complete" in watched.out) == (0, True)
    assert rig.ask("show", run).code == 0
    assert "step A" in rig.ask("show", run, "A").out
    assert "spawn_pm_for_planning" in rig.ask("history", run).out


def test_an_edited_group_is_adopted_on_resume(rig: TeamRig) -> None:
    rig.says("pm.plan.1", status="NEEDS_CLARIFICATION", questions=["?"])
    rig.team("--no-wait")
    rig.ask("team", "answer", "yes")
    rig.hold("A", "develop")
    running = rig.start("resume")
    running.wait_for("spawn_2_developers_parallel")
    run = team_of(rig.ask("team", "status"))
    assert rig.ask("pause", run, "--now").code == 0
    running.end()
    path = rig.repo / "coordination" / "group_status.json"
    document = json.loads(path.read_text())
    document["A"]["status"] = "waiting_qa"
    path.write_text(json.dumps(document))
    rig.open("go")
    assert rig.orc("resume").code == 4
    done = rig.orc("resume", "--adopt-edits")
    assert done.code == 0, done
    assert "edited by hand" in done.err
    assert len(list((rig.repo / ".git" / "orc" / "launches").glob("*/A~*develop"))) == 1, "only QA came after"
    assert "A qa 1" in rig.turns()


@pytest.mark.parametrize(("status", "judge"), [("complete", "the review and the merge"), ("waiting_review", "QA")])
def test_an_edit_cannot_approve_a_group(rig: TeamRig, status: str, judge: str) -> None:
    rig.hold("A", "develop")
    running = rig.start_team()
    running.wait_for("spawn_2_developers_parallel")
    assert rig.ask("pause", team_of(rig.ask("team", "status")), "--now").code == 0
    running.end()
    path = rig.repo / "coordination" / "group_status.json"
    document = json.loads(path.read_text())
    document["A"]["status"] = status
    path.write_text(json.dumps(document))
    refused = rig.orc("resume", "--adopt-edits")
    assert (refused.code, f"{judge} decide" in refused.err) == (2, True), refused
    assert json.loads(path.read_text())["A"]["status"] == "dev_working"
    rig.open("go")
    assert rig.orc("resume").code == 0
    assert "A qa 1" in rig.turns()


def test_a_broken_file_is_put_aside_and_the_edits_beside_it_are_adopted(rig: TeamRig) -> None:
    rig.hold("A", "develop")
    running = rig.start_team()
    running.wait_for("spawn_2_developers_parallel")
    assert rig.ask("pause", team_of(rig.ask("team", "status")), "--now").code == 0
    running.end()
    folder = rig.repo / "coordination"
    document = json.loads((folder / "group_status.json").read_text())
    document["A"]["status"] = "waiting_qa"
    (folder / "group_status.json").write_text(json.dumps(document))
    (folder / "orchestrator_state.json").write_text("{broken")
    rig.open("go")
    refused = rig.orc("resume")
    assert (refused.code, "put aside" in refused.err) == (2, True), refused
    done = rig.orc("resume", "--adopt-edits")
    assert (done.code, "edited by hand" in done.err) == (0, True), done
    assert len(list((rig.repo / ".git" / "orc" / "launches").glob("*/A~*develop"))) == 1, "only QA came after"
    assert "A qa 1" in rig.turns()
    assert not (folder / "archive").exists()


def test_roles_are_played_by_the_agents_given_for_them(rig: TeamRig) -> None:
    lead = rig.side / "lead.sh"
    lead.write_text('#!/bin/sh\necho lead >>"${0%/*}/lead.log"\necho \'{"status": "APPROVED"}\' >"$REPORT_PATH"\n')
    lead.chmod(0o755)
    rig.plan(group("A"))
    done = rig.team("--role", f"tech_lead={lead}", "--max-parallel", "1")
    assert done.code == 0, done
    assert (rig.side / "lead.log").read_text().split() == ["lead", "lead"]
    assert not any("review" in turn for turn in rig.turns())


def test_the_example_in_the_repository_plays_a_whole_team(rig: TeamRig) -> None:
    script = rig.side / "rehearsal.yaml"
    script.write_text((ROOT / "examples" / "team" / "rehearsal.yaml").read_text().replace("takes: 1s", "takes: 0.05"))
    done = rig.orc("team", "run", REQUIREMENTS, "--rehearse", str(script), "--check", "true")
    assert done.code == 0, done
    groups = rig.file("group_status.json")
    assert [groups[name]["iterations"]["developer"] for name in "ABC"] == [2, 2, 2]
    assert sorted(path.name for path in rig.repo.glob("*.py")) == ["auth.py", "password_reset.py", "users.py"]
    for name in ("pm_state.json", "messages/dev_to_qa.json"):
        assert rig.ask("validate", f"coordination/{name}").code == 0
    (rig.repo / "pm_state.json").write_text('{"session_id": 3}')
    wrong = rig.ask("validate", "pm_state.json")
    assert (wrong.code, "session_id" in wrong.err) == (2, True)


def test_pruning_deletes_a_team_and_leaves_the_next_ones_files_alone(rig: TeamRig) -> None:
    first = team_of(rig.team())
    second = team_of(rig.team(requirements="more"))
    pruned = rig.ask("prune", "--older-than", "0", "--keep", "1", "--yes")
    assert pruned.code == 0, pruned
    assert not (rig.repo / "coordination" / "archive" / first).exists()
    assert rig.file("orchestrator_state.json")["session_id"] == second


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("team", "run"), "There are no requirements"),
        (("team", "run", "x"), "Nobody would work as project_manager, developer, qa_expert, tech_lead"),
        (("team", "run", "x", "--agent-command", "true", "--into", "nowhere"), "--into is 'nowhere'"),
        (("team", "run", "x", "--agent-command", "true", "--testing", "some"), "one of full, minimal, none"),
        (("team", "run", "x", "--agent-command", "true", "--max-parallel", "0"), "at least 1"),
        (("team", "run", "x", "--agent-command", "true", "--role", "boss=claude"), "one of the roles"),
        (("team", "run", "x", "--requirements", "gone.md", "--agent-command", "true"), "given twice"),
        (("team", "run", "--requirements", "gone.md", "--agent-command", "true"), "does not exist"),
        (("team", "run", "x", "--agent-command", "true", "--check", "a", "--no-check"), "exclude each other"),
        (("team", "run", "x", "--agent-command", "true", "--check", " "), "--check is empty"),
        (("team", "status"), "There is no team"),
        (("team", "answer", "x"), "There is no team"),
        (("team", "run", "- log in\n- log out", "--agent-command", "true"), "give it last, after `--`"),
    ],
)
def test_what_could_never_work_is_refused_in_a_sentence(rig: TeamRig, arguments: tuple[str, ...], said: str) -> None:
    refused = rig.ask(*arguments)
    assert refused.code == 2, refused
    assert said in refused.err
    assert not (rig.repo / "coordination").exists()


def test_a_team_needs_a_repository_with_a_commit(tmp_path: Path) -> None:
    rig = TeamRig.__new__(TeamRig)
    rig.repo, rig.side = tmp_path, tmp_path
    refused = rig.ask("team", "run", "x", "--agent-command", "true", "--repo", str(tmp_path))
    assert (refused.code, "needs a git repository" in refused.err) == (3, True)


@pytest.mark.parametrize(
    "name", ["pm_state", "group_status", "orchestrator_state", "dev_to_qa", "qa_to_techlead", "techlead_to_dev"]
)
def test_the_schemas_are_published(rig: TeamRig, name: str) -> None:
    published = rig.ask("schema", f"team-{name.replace('_', '-')}")
    assert published.code == 0
    schema = json.loads(published.out)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    example = json.loads((DATA / f"team_{name}_example.json").read_text())
    import jsonschema_rs

    assert list(jsonschema_rs.validator_for(schema).iter_errors(example)) == []
    if name != "orchestrator_state":
        assert document_faults(name, example) == []
