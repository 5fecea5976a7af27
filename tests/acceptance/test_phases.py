"""`orc phases run` with plain programs as agents: loops, a re-plan, an auto-fix, learnings, milestones, checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.phases_rig import FOUR_PHASES, SMALL, WORKS, PhasesRig
from tests.acceptance.rig import wait_until

LEARNS = WORKS.replace(
    '"criteria\\"',
    '"learnings\\": [{\\"type\\": \\"insight\\", \\"lesson\\": \\"look at the model of $STEP_ID\\"}], \\"criteria\\"',
)
RE_PLAN = {
    "status": "RE_PLAN",
    "summary": "there is a module for this",
    "conflicts": [{"type": "architecture", "severity": "high", "details": "auth exists", "recommendation": "use it"}],
    "affected_tasks": ["2.2"],
    "recommended_changes": [
        {"action": "describe", "task": "2.2", "description": "Use the roles that exist."},
        {"action": "add", "task": "2.3", "name": "Migrate", "criteria": ["Written `test -f work-2.3`"], "needs": ["2.2"]},
    ],
}
AUTO_FIX = {
    "status": "AUTO_FIX",
    "conflicts": [{"type": "pattern", "details": "a name breaks the convention"}],
    "auto_fixes": [{"file": "tidied", "issue": "named badly", "fix": "renamed"}],
}

BESIDE = SMALL.replace("**Dependencies**: 1.1\n", "**Files**: work-1.2\n")
BESIDE = BESIDE.replace("- [ ] It is good\n\n", "- [ ] It is good\n**Files**: work-1.1\n\n", 1)


@pytest.fixture
def rig(repo: Path) -> PhasesRig:
    return PhasesRig(repo)


def script_four_phases(rig: PhasesRig) -> None:
    """Loops in 1.1, learnings everywhere, a re-plan before 2.1, an auto-fix after 3.1, a finding in the review."""
    rig.write(FOUR_PHASES)
    rig.do("task-executor", LEARNS)
    rig.do(
        "supervisor.2.1",
        f"""
if [ -e "$here/planned" ]; then echo '{{"status": "PASS"}}' >"$REPORT_PATH"
else touch "$here/planned"; cat >"$REPORT_PATH" <<'END'
{json.dumps(RE_PLAN)}
END
fi""",
    )
    rig.do(
        "supervisor.3.1",
        f"""
if [ "$ITERATION" = 0 ]; then echo '{{"status": "PASS"}}' >"$REPORT_PATH"
else touch tidied; cat >"$REPORT_PATH" <<'END'
{json.dumps(AUTO_FIX)}
END
fi""",
    )
    found = {"status": "FOUND", "findings": [{"priority": "P2", "issue": "slow"}, {"priority": "P0", "issue": "wrong"}]}
    rig.report("code-improvement-scanner.review.1", found)
    rig.report("outer-ralph", {"status": "FIXED", "summary": "mended"}, also='echo "$ITERATION" >>mended')


def test_a_document_of_four_phases_runs_to_completed(rig: PhasesRig) -> None:
    script_four_phases(rig)
    done = rig.phases("--yes")
    assert done.code == 0, done
    state = rig.state()
    assert state["orchestrator"]["status"] == "completed"
    assert [entry["task"] for entry in state["completed_tasks"]] == ["1.1", "1.2", "2.1", "2.2", "2.3", "3.1", "4.1"]
    assert state["completed_tasks"][0]["iterations"] == 2
    assert state["completed_tasks"][0]["success_criteria_met"] == {"twice_written": True, "it_is_good": True}
    assert [one["name"] for one in state["milestones"]] == ["Foundation", "Endpoints", "Integration", "Polish"]
    supervisor = state["supervisor"]
    assert (supervisor["re_plans_triggered"], supervisor["auto_fixes_applied"], supervisor["conflicts_detected"]) == (1, 1, 2)
    assert [(one["task"], one["action"]) for one in supervisor["interventions"]] == [("2.1", "re_plan"), ("3.1", "auto_fix")]
    assert supervisor["checks_performed"] == 2 * 7 + 1
    assert rig.git("branch", "--show-current") == "phases/user-auth"
    rig.check_numbers()


def test_what_the_supervisor_mends_and_what_the_review_mends_are_commits_of_their_own(rig: PhasesRig) -> None:
    script_four_phases(rig)
    assert rig.phases("--yes").code == 0
    commits = rig.commits()
    at = commits.index("Auto-fix in task 3.1: a name breaks the convention")
    assert commits[at - 1] == "Task 3.1: Protect endpoints"
    fixed = rig.git("log", "--format=%H", "--grep", "Auto-fix in task 3.1").splitlines()[0]
    assert rig.git("show", "--format=", "--name-only", fixed) == "tidied"
    assert [text for text in commits if text.startswith("Review: ")] == ["Review: wrong", "Review: slow"]


def test_a_change_of_the_plan_is_in_the_prompt_of_the_task_that_it_describes(rig: PhasesRig) -> None:
    script_four_phases(rig)
    assert rig.phases("--yes").code == 0
    assert "Use the roles that exist." in rig.prompt("task-executor.2.2.1")
    assert "Task 2.3: Migrate" in rig.prompt("task-executor.2.3.1")


def test_learnings_are_told_to_later_tasks_and_to_later_runs(rig: PhasesRig) -> None:
    rig.do("task-executor", LEARNS)
    assert rig.phases("--yes").code == 0
    assert "look at the model of 1.1" not in rig.prompt("task-executor.1.1.1")
    assert "look at the model of 1.1" in rig.prompt("task-executor.1.2.1")
    lines = [json.loads(line) for line in (rig.repo / ".claude" / "learnings.jsonl").read_text().splitlines()]
    assert lines == rig.state()["learnings"]
    rig.git("reset", "--hard", "--quiet", "main")
    rig.write(SMALL.replace("#### Task 1.1: First", "#### Task 1.1: Look at the first"))
    assert rig.phases("--yes").code == 0
    assert "look at the model of 1.2" in rig.prompt("task-executor.1.1.1")
    after = (rig.repo / ".claude" / "learnings.jsonl").read_text().splitlines()
    assert len(after) == 4


def test_the_plan_waits_for_a_person_unless_yes_is_given(rig: PhasesRig) -> None:
    done = rig.phases("--no-wait", "--run-id", "asks")
    assert done.code == 4, done
    state = rig.state()
    assert (state["orchestrator"]["status"], state["orchestrator"]["current_task"]) == ("planning", "0/2")
    assert rig.orc("approve", "asks").code == 0
    assert rig.orc("resume", "asks").code == 0
    assert rig.state()["orchestrator"]["status"] == "completed"


def test_a_rejected_plan_fails_the_run(rig: PhasesRig) -> None:
    rig.phases("--no-wait", "--run-id", "asks")
    assert rig.orc("reject", "asks", "--comments", "not now").code == 0
    done = rig.orc("resume", "asks")
    assert done.code == 1, done
    assert "the plan was rejected: not now" in done.out
    assert rig.state()["orchestrator"]["status"] == "failed"


def test_a_planner_asks_everything_at_once_and_the_answers_are_in_the_prompts(rig: PhasesRig) -> None:
    rig.report("planner", {"status": "QUESTIONS", "questions": ["Which database?", "Which port?"]})
    done = rig.phases("--no-wait", "--run-id", "asks", "--plan-with", str(rig.agent))
    assert done.code == 4, done
    assert "1. Which database? 2. Which port?" in done.out
    assert rig.orc("approve", "asks", "--comments", "sqlite, and 8080").code == 0
    assert rig.orc("resume", "asks", "--no-wait").code == 4
    assert rig.orc("approve", "asks").code == 0
    assert rig.orc("resume", "asks").code == 0
    assert "sqlite, and 8080" in rig.prompt("task-executor.1.1.1")


def test_a_failed_task_is_retried_with_what_the_person_says(rig: PhasesRig) -> None:
    rig.report("task-executor.1.1", {"status": "FAILED", "summary": "no idea"})
    done = rig.phases("--yes", "--no-wait", "--run-id", "fails", "--max-iterations", "3")
    assert done.code == 4, done
    assert "3 of 3 iterations were made" in done.out
    assert "another approach" not in rig.prompt("task-executor.1.1.2")
    assert "another approach" in rig.prompt("task-executor.1.1.3")
    rig.do("task-executor.1.1", WORKS)
    said = rig.orc("phases", "retry", "1.1", "--comments", "look into the lexer")
    assert said.code == 0, said
    assert rig.orc("resume", "fails").code == 0
    assert "look into the lexer" in rig.prompt("task-executor.1.1.4")
    assert rig.state()["completed_tasks"][0]["iterations"] == 4


def test_a_skipped_task_leaves_its_dependents_undone_and_is_named_in_the_warnings(rig: PhasesRig) -> None:
    rig.report("task-executor.1.1", {"status": "FAILED"}, also="touch half")
    assert rig.phases("--yes", "--no-wait", "--run-id", "fails", "--max-iterations", "1").code == 4
    assert rig.orc("phases", "skip", "1.1", "--why", "done elsewhere").code == 0
    done = rig.orc("resume", "fails")
    assert done.code == 1, done
    assert "no task was completed: all 2 were skipped" in done.out
    state = rig.state()
    assert state["orchestrator"]["status"] == "failed"
    assert (state["completed_tasks"], state["pending_tasks"]) == ([], [])
    warned = state["safety_bounds"]["warnings"]
    assert warned[:2] == ["Task 1.1 was skipped: done elsewhere", "Task 1.2 was skipped: it depends on task 1.1"]
    assert "Left by task 1.1: First" in rig.commits()
    assert state["milestones"] == []


def test_only_one_run_at_a_time_and_the_ended_one_is_archived(rig: PhasesRig) -> None:
    assert rig.phases("--no-wait", "--run-id", "first").code == 4
    second = rig.phases("--yes")
    assert second.code == 2
    assert "Run first (Small thing, waiting) is unfinished" in second.err
    assert rig.orc("abort", "first").code == 0
    assert rig.state()["orchestrator"]["status"] == "failed"
    assert rig.phases("--yes", "--run-id", "second").code == 0
    kept = json.loads((rig.repo / ".claude" / "archive" / "first" / "agent-state.json").read_text())
    assert kept["orchestrator"]["status"] == "failed"
    assert rig.state()["orchestrator"]["status"] == "completed"


def test_prune_forgets_ended_runs_and_leaves_everything_else_in_their_folder_alone(rig: PhasesRig) -> None:
    for run in ("first", "second"):
        assert rig.phases("--yes", "--run-id", run).code == 0
    settings, archive = rig.repo / ".claude" / "settings.local.json", rig.repo / ".claude" / "archive" / "first"
    settings.write_text("{}")
    assert archive.is_dir()
    pruned = rig.orc("prune", "--older-than", "0", "--yes", "--json")
    assert sorted(pruned.json["deleted"]) == ["first", "second"], pruned
    assert (settings.exists(), archive.exists()) == (True, False)


def test_without_git_it_exits_with_3(tmp_path: Path, repo: Path) -> None:
    rig = PhasesRig(repo)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "task.md").write_text(SMALL)
    done = rig.orc(*rig.arguments(), cwd=bare)
    assert done.code == 3
    assert "Phases need git for their checkpoints" in done.err


def test_an_agent_that_is_not_there_is_refused_before_a_branch_is_made(rig: PhasesRig) -> None:
    rig.write(SMALL)
    refused = rig.orc("phases", "run", "task.md", "--yes", "--agent-command", "./missing")
    assert (refused.code, rig.orc("list", "--json").json["runs"]) == (3, [])
    assert "there is no such file in" in refused.err


@pytest.mark.parametrize("made", ["file", "link"])
def test_a_place_where_no_state_file_can_be_is_refused_before_a_branch_is_made(rig: PhasesRig, tmp_path: Path, made: str) -> None:
    folder = rig.repo / ".claude"
    folder.write_text("mine") if made == "file" else folder.symlink_to(tmp_path)
    rig.git("add", ".claude")
    rig.git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "-m", "mine")
    refused = rig.phases("--yes")
    assert (refused.code, str(folder) in refused.err) == (3, True), refused
    assert (rig.git("branch", "--show-current"), rig.orc("list", "--json").json["runs"]) == ("main", [])


def test_uncommitted_changes_are_refused_but_the_document_itself_is_not(rig: PhasesRig) -> None:
    (rig.repo / "mine").write_text("not yet")
    refused = rig.phases("--yes")
    assert refused.code == 2
    assert "uncommitted changes (mine)" in refused.err
    assert rig.git("branch", "--show-current") == "main"


def test_settings_that_are_not_committed_stop_nobody_and_are_never_committed(rig: PhasesRig) -> None:
    (rig.repo / ".orc.toml").write_text('[budget]\nday_time = "2h"\n')
    done = rig.phases("--yes")
    assert done.code == 0, done
    assert "   orc merge " in done.out
    assert ".orc.toml" not in rig.git("ls-tree", "-r", "--name-only", "HEAD")
    assert rig.git("status", "--porcelain") == "?? .orc.toml"


def test_the_old_format_is_refused_with_the_sentence_of_the_seed(rig: PhasesRig) -> None:
    (rig.repo / ".claude").mkdir()
    (rig.repo / ".claude" / "agent-state.json").write_text('{"status": "executing", "current_step": 5, "total_steps": 10}')
    done = rig.phases("--yes")
    assert done.code == 2
    assert "Migration not automatic" in done.err


def test_the_supervisor_looks_when_a_person_asks_for_it(rig: PhasesRig) -> None:
    rig.hold("task-executor", "1.1")
    running = rig.start_phases("--yes", "--run-id", "looks")
    wait_until(lambda: rig.started("task-executor"))
    assert rig.orc("phases", "check", "1.2").code == 0
    rig.open("go")
    assert running.end().code == 0
    assert rig.started("supervisor.check") == ["supervisor.check.0 1"]
    assert rig.state()["supervisor"]["checks_performed"] == 5


def test_tasks_with_files_of_their_own_run_side_by_side_and_are_merged(rig: PhasesRig) -> None:
    rig.write(BESIDE)
    rig.hold("task-executor", "1.1")
    running = rig.start_phases("--yes", "--max-parallel", "2")
    wait_until(lambda: len(rig.started("task-executor")) == 2)
    locks = json.loads((rig.repo / ".claude" / "locks.json").read_text())
    assert {path: held["agent"] for path, held in locks.items()} == {
        "work-1.1": "task-executor:1.1",
        "work-1.2": "task-executor:1.2",
    }
    rig.open("go")
    assert running.end().code == 0
    assert sorted(path.name for path in rig.repo.glob("work-*")) == ["work-1.1", "work-1.2"]
    assert {entry["task"] for entry in rig.state()["completed_tasks"]} == {"1.1", "1.2"}
    assert json.loads((rig.repo / ".claude" / "locks.json").read_text()) == {}
    for entry in rig.state()["checkpoints"]:
        assert rig.git("cat-file", "-t", entry["git_sha"]) == "commit"
