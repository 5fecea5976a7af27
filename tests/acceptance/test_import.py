"""`orc import`: state files without a journal become runs that stand still, and everything that was changed is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.phases_rig import FOUR_PHASES, SMALL, PhasesRig
from tests.acceptance.rig import Result, Rig
from tests.acceptance.team_rig import TeamRig

DATA = Path(__file__).parents[1] / "seeds" / "data"

SLOPPY: dict[str, Any] = {
    "run_id": "old1",
    "workflow_name": "another",
    "created_at": "$START",
    "steps": {
        "planning": {"status": "COMPLETED", "attempts": 1},
        "coding": {"status": "RUNNING", "attempts": None, "metrics": {"tokens": 12}},
        "gone": {"status": "COMPLETED"},
    },
}


def write_state(rig: Rig, document: object, where: str = ".agents/runs/old1") -> str:
    folder = rig.repo / where
    folder.mkdir(parents=True)
    (folder / "run_state.json").write_text(json.dumps(document))
    return where


def test_a_sloppy_state_file_becomes_a_paused_run_that_goes_on(rig: Rig) -> None:
    path = write_state(rig, SLOPPY)
    taken = rig.orc("import", path, "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"))
    assert taken.code == 0, taken
    for change in (
        "created_at: '$START' is not a time",
        "steps.coding: was RUNNING, is PENDING",
        "steps.coding.attempts: must be a whole number",
        "steps.gone: left out, the workflow has no such step",
        "steps.code_review: new, PENDING",
        "workflow_name: was 'another'",
    ):
        assert change in taken.out
    assert "go on with `orc resume old1`" in taken.out
    assert json.loads((rig.repo / path / "run_state.json.imported").read_text()) == SLOPPY
    assert rig.state("old1")["steps"]["coding"]["status"] == "PENDING"
    assert rig.orc("resume", "old1").code == 0
    assert [len(rig.launches(step)) for step in ("planning", "coding", "code_review")] == [0, 1, 1]


def test_a_state_file_from_elsewhere_is_left_where_it_is(rig: Rig) -> None:
    (rig.side / "run_state.json").write_text(json.dumps(SLOPPY))
    taken = rig.ask(
        "import",
        str(rig.side / "run_state.json"),
        "--workflow",
        "workflow.yaml",
        "--wrapper",
        str(rig.side / "wrapper.py"),
        "--json",
    )
    assert (taken.json["run_id"], taken.json["status"], len(taken.json["changed"])) == ("old1", "paused", 6)
    assert (rig.side / "run_state.json").exists()


def test_a_run_that_has_a_journal_is_not_taken_over_again(rig: Rig) -> None:
    done = rig.run("--run-id", "one")
    again = rig.orc(
        "import", f".agents/runs/{done.run}", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")
    )
    assert again.code == 2, again
    assert "Run one exists already (it is completed)" in again.err


def test_a_loop_of_another_tool_becomes_a_paused_loop(rig: Rig) -> None:
    (rig.side / "state.json").write_text('{"task": "fix it", "completion_criteria": "true", "iteration": 3, "status": "running"}')
    taken = rig.orc("import", str(rig.side))
    assert taken.code == 0, taken
    assert "status: was running, is paused" in taken.out
    assert "orc loop resume ralph-fix-it-" in taken.out
    assert rig.orc("import", str(rig.side)).code == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere", "The state file nowhere does not exist"),
        ("workflow.yaml", "is no state file that can be taken over"),
        (".", "There is no state file in"),
        (".agents/runs/old1", "give its file with --workflow"),
    ],
)
def test_what_cannot_be_taken_over_is_said_in_a_sentence(rig: Rig, path: str, says: str) -> None:
    write_state(rig, SLOPPY)
    refused = rig.orc("import", path)
    assert refused.code == 2, refused
    assert says in refused.err


def test_a_state_file_that_is_no_json_is_refused_and_left_alone(rig: Rig) -> None:
    path = write_state(rig, SLOPPY)
    (rig.repo / path / "run_state.json").write_text('{"run_id": "old1", ')
    refused = rig.orc("import", path, "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"))
    assert refused.code == 2, refused
    assert (rig.repo / path / "run_state.json").exists()


def phases_rig(repo: Path, document: str = FOUR_PHASES) -> PhasesRig:
    rig = PhasesRig(repo, document)
    (repo / ".claude").mkdir()
    return rig


def import_phases(rig: PhasesRig, document: object, *more: str) -> Result:
    (rig.repo / ".claude" / "agent-state.json").write_text(json.dumps(document))
    agent = ("--agent-command", str(rig.agent), "--allow-unmetered")
    return rig.orc("import", ".claude/agent-state.json", "--document", "task.md", *agent, *more)


def run_of(taken: Result) -> str:
    return taken.out.splitlines()[-1].split()[1]


def test_the_seeds_phases_example_becomes_a_paused_run_that_goes_on(repo: Path) -> None:
    rig, example = phases_rig(repo), json.loads((DATA / "agent_state_example.json").read_text())
    taken = import_phases(rig, example)
    assert taken.code == 0, taken
    for change in (
        "changed: orchestrator.task_doc: was '/Users/you/.claude/tasks/user-auth.md'",
        "changed: phase: pending_tasks, milestones and checkpoints are counted from 0",
        "changed: active_agents: task-executor of task 2.1 does not work here; task 2.1 begins anew",
        "changed: pending_tasks: 4.1 is new, from the task document",
        "changed: branch: work goes on on phases/user-auth",
    ):
        assert change in taken.out
    assert json.loads((rig.repo / ".claude/agent-state.json.imported").read_text()) == example
    state = rig.state()
    for part in ("supervisor", "completed_tasks", "learnings"):
        assert state[part] == example[part]
    bounds = {**example["safety_bounds"], "warnings": ["Paused: imported"]}
    assert state["safety_bounds"] == bounds
    assert state["orchestrator"]["start_time"] == "2026-01-15T12:00:00Z"
    assert state["checkpoints"] == [{**one, "phase": 0} for one in example["checkpoints"]]
    assert [one["task"] for one in state["pending_tasks"]] == ["2.1", "2.2", "3.1", "4.1"]
    run = run_of(taken)
    assert rig.orc("resume", run, "--no-wait").code == 0
    assert [one.split(".")[1:3] for one in rig.started("task-executor")] == [["2", "1"], ["2", "2"], ["3", "1"], ["4", "1"]]
    ended = rig.state()
    assert ended["orchestrator"]["status"] == "completed"
    assert [one["state_snapshot"] for one in ended["checkpoints"]] == [f"checkpoint-{n:03d}.json" for n in range(1, 7)]
    assert "$0.75" in rig.orc("usage", run).out
    refused = rig.orc("rewind", run, "--to", "checkpoint-001")
    assert (refused.code, "was not made here" in refused.err) == (2, True), refused


def test_a_sloppy_phases_file_is_read_as_far_as_it_can_be(repo: Path) -> None:
    rig = phases_rig(repo, SMALL)
    sloppy = {
        "orchestrator": {"status": "failed", "start_time": "$START", "end_time": None},
        "supervisor": None,
        "completed_tasks": [{"task": "1.1", "completed": "$START"}, {"task": "9.9", "name": "gone"}, "no entry"],
        "pending_tasks": [{"task": "1.2"}, {"task": "1.1"}, {"task": "1.3", "name": "More"}, {"task": "soon"}],
        "safety_bounds": {"max_cost": "a lot", "cost_so_far": "?", "elapsed_time": "long"},
        "learnings": [{"lesson": "look first"}],
        "checkpoints": [{"task": "1.1", "git_sha": "abc", "state_snapshot": "../../etc/passwd"}],
    }
    taken = import_phases(rig, sloppy)
    assert taken.code == 0, taken
    for change in (
        "orchestrator.start_time: '$START' is not a time",
        "orchestrator.status: was failed, is executing",
        "completed_tasks: 9.9 is left out",
        "completed_tasks[2]: is not an object; left out",
        "completed_tasks[0].cost: was missing, is 'unknown'",
        "pending_tasks: 1.1 is left out, it is completed",
        "pending_tasks: 'soon' is left out",
        "safety_bounds.max_cost: ",
        "safety_bounds.cost_so_far: ",
        "safety_bounds.elapsed_time: ",
        "checkpoints: '../../etc/passwd' of task '1.1' is left out",
    ):
        assert change in taken.out, taken
    state = rig.state()
    assert [one["task"] for one in state["completed_tasks"]] == ["1.1"]
    assert [(one["task"], one["name"]) for one in state["pending_tasks"]] == [("1.2", "Second"), ("1.3", "More")]
    again = import_phases(rig, sloppy)
    assert (again.code, "is unfinished in this repository" in again.err) == (2, True), again


def test_what_was_spent_elsewhere_counts_under_the_limits(repo: Path) -> None:
    rig, example = phases_rig(repo), json.loads((DATA / "agent_state_example.json").read_text())
    example["safety_bounds"]["elapsed_time"] = "2h 0m 1s"
    run = run_of(import_phases(rig, example))
    assert rig.orc("resume", run, "--no-wait").code == 5
    assert rig.started("task-executor") == []


def test_a_completed_phases_run_is_taken_over_as_completed(repo: Path) -> None:
    rig, example = phases_rig(repo), json.loads((DATA / "agent_state_example.json").read_text())
    example["orchestrator"] |= {"status": "completed", "end_time": "2026-01-15T13:00:00Z"}
    assert "is taken over (completed)." in import_phases(rig, example).out
    assert rig.state()["orchestrator"]["end_time"] == "2026-01-15T13:00:00Z"


@pytest.mark.parametrize(
    ("document", "more", "says"),
    [
        ({"status": "executing", "current_step": 5, "total_steps": 10}, (), "Migration not automatic"),
        ({"tasks": []}, (), "it has no orchestrator"),
        ({"orchestrator": {}}, ("--agent", "nobody"), "exclude each other"),
    ],
)
def test_a_phases_file_that_cannot_be_used_is_refused_and_left_alone(
    repo: Path, document: object, more: tuple[str, ...], says: str
) -> None:
    rig = phases_rig(repo, SMALL)
    refused = import_phases(rig, document, *more)
    assert (refused.code, says in refused.err) == (2, True), refused
    assert json.loads((rig.repo / ".claude/agent-state.json").read_text()) == document
    assert rig.git("branch", "--show-current") == "main"


def test_a_phases_file_needs_its_task_document(repo: Path) -> None:
    rig = phases_rig(repo, SMALL)
    (rig.repo / ".claude/agent-state.json").write_text('{"orchestrator": {}}')
    refused = rig.orc("import", ".claude")
    assert (refused.code, "give it with --document" in refused.err) == (2, True), refused


NAMES = ("pm_state", "group_status", "orchestrator_state", "dev_to_qa", "qa_to_techlead", "techlead_to_dev")


def seed_team() -> dict[str, Any]:
    return {name: json.loads((DATA / f"team_{name}_example.json").read_text()) for name in NAMES}


def import_team(repo: Path, files: dict[str, Any], *more: str) -> tuple[TeamRig, Result]:
    rig = TeamRig(repo)
    (repo / "coordination" / "messages").mkdir(parents=True)
    for name, document in files.items():
        where = f"messages/{name}" if "_to_" in name else name
        (repo / "coordination" / f"{where}.json").write_text(json.dumps(document))
    return rig, rig.orc("import", "coordination", "--agent-command", str(rig.program), "--check", "true", *more)


def test_the_seeds_team_becomes_a_paused_team_that_goes_on(repo: Path) -> None:
    files = seed_team()
    rig, taken = import_team(repo, files)
    assert taken.code == 0, taken
    for change in (
        "changed: group C: was dev_working, but there is no branch feature/group-C-pwd-reset here; it is pending",
        "changed: active_agents: tech_lead of C does not work here",
    ):
        assert change in taken.out
    assert "Run v4_20250106_100000 is taken over (paused); go on with `orc resume v4_20250106_100000`." in taken.out
    for name, document in files.items():
        where = f"messages/{name}" if "_to_" in name else name
        assert json.loads((repo / "coordination" / f"{where}.json.imported").read_text()) == document
        if "_to_" in name:
            assert rig.file(f"{where}.json") == document
    ours = rig.file("group_status.json")
    for name, told in files["group_status"].items():
        assert {**ours[name], "last_update": told["last_update"]} == told
    story = rig.file("orchestrator_state.json")
    assert story["decisions_log"] == files["orchestrator_state"]["decisions_log"]
    assert (story["total_spawns"], story["start_time"]) == (15, "2025-01-06T10:00:00Z")
    done = rig.orc("resume", "v4_20250106_100000", "--no-wait")
    assert done.code == 0, done
    assert rig.turns() == ["C develop 1", "C qa 1", "C review 1", "pm final 2", "pm confirm 1"]
    assert rig.file("pm_state.json")["completed_groups"] == ["A", "B", "C"]


def test_work_of_a_team_that_is_on_branches_is_reviewed_or_gone_on_with(repo: Path) -> None:
    files = seed_team()
    files["group_status"]["C"] = {
        "status": "changes_requested",
        "iterations": {"developer": 2, "qa": None},
        "start_time": "$START",
        "branch_name": None,
        "tech_lead_feedback": [{"decision": "changes_requested", "feedback": "Limit the rate", "timestamp": "$START"}],
    }
    for name in ("feature/group-B-user-reg", "feature/group-C-pwd-reset"):
        subprocess.run(["git", "branch", name], cwd=repo, check=True)
    commit = ["git", "-c", "user.name=d", "-c", "user.email=d@localhost", "commit", "-q", "--allow-empty", "-m", "Work on B"]
    for command in (["switch", "-q", "feature/group-B-user-reg"], commit[1:], ["switch", "-q", "-"]):
        subprocess.run(["git", *command], cwd=repo, check=True)
    rig, taken = import_team(repo, files)
    assert taken.code == 0, taken
    for change in (
        "group B: was complete, but feature/group-B-user-reg is not merged into main; it is waiting_review",
        "group_status.C.start_time: '$START' is not a time",
        "group_status.C.tech_lead_feedback[0].timestamp: '$START' is not a time",
    ):
        assert change in taken.out, taken
    done = rig.orc("resume", "v4_20250106_100000", "--no-wait")
    assert done.code == 0, done
    assert {"B review 2", "C develop 3", "C qa 1", "C review 1"} <= set(rig.turns())
    assert "Limit the rate" in rig.prompt("C", "develop", 3)
    assert "Work on B" in rig.git("log", "--format=%s", "main")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"orchestrator_state": {"session_id": "v4_20250106_100000"}}, "The plan of the team"),
        ({"pm_state": {"task_groups": []}}, "it has no original_requirements"),
        ({"pm_state": {"original_requirements": "a thing"}}, "it has no task_groups"),
        ({"pm_state": {"original_requirements": "a thing", "task_groups": [{"id": "../x"}]}}, "groups[0].id"),
        ({"pm_state": {"original_requirements": "a", "task_groups": [{"id": "A", "branch_name": "main"}]}}, "--into"),
    ],
)
def test_a_team_that_cannot_be_taken_over_is_refused_and_left_alone(repo: Path, files: dict[str, Any], says: str) -> None:
    rig, refused = import_team(repo, files)
    assert (refused.code, says in refused.err) == (2, True), refused
    assert not list((repo / "coordination").glob("**/*.imported"))
    assert "v4_" not in rig.orc("list").out


def test_a_sloppy_team_gets_a_session_and_loses_only_what_is_said(repo: Path) -> None:
    files = {
        "pm_state": {
            "session_id": "mine",
            "original_requirements": "a thing",
            "all_tasks": [{"id": "T1", "group_id": "Z"}, {"id": "T2", "status": "done"}],
            "task_groups": [{"id": "A", "depends_on": ["Z"], "complexity": "huge", "branch_name": None}],
        },
        "group_status": {"A": {"status": "busy"}, "Z": {}},
        "dev_to_qa": {"messages": [{"id": "msg_1", "group_id": "Z"}, {"group_id": "A"}, None]},
    }
    rig, taken = import_team(repo, files)
    assert taken.code == 0, taken
    for change in (
        "session_id: was 'mine', is v4_",
        "task_groups: A depends on 'Z', which is no group; left out",
        "task_groups.complexity: ",
        "task_groups: the branch of A was None, is feature/group-A",
        "all_tasks: T1 is left out, there is no group 'Z'",
        "all_tasks.status: ",
        "group_status.A.status: ",
        "group_status.Z: left out, the plan has no such group",
        "messages/dev_to_qa[0]: left out, the plan has no group 'Z'",
        "messages/dev_to_qa[1]: ",
        "messages/dev_to_qa[2]: is not an object; left out",
    ):
        assert change in taken.out, taken
    assert rig.file("pm_state.json")["task_groups"][0]["status"] == "assigned"
    again = rig.orc("import", "coordination", "--agent-command", str(rig.program))
    assert again.code == 2, again
