"""`orc import`: state files without a journal become runs that stand still, and everything that was changed is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Result, Rig
from tests.acceptance.swarm_rig import SwarmRig
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
        "left out: steps.gone: the workflow has no such step",
        "steps.code_review: new, PENDING",
        "workflow_name: was 'another'",
    ):
        assert change in taken.out
    assert "continue with `orc resume old1`" in taken.out
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
        "changed: orchestrator_state.active_agents[0]: tech_lead of C does not work here",
    ):
        assert change in taken.out
    assert "Run v4_20250106_100000 is taken over (paused); continue with `orc resume v4_20250106_100000`." in taken.out
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


def test_work_of_a_team_that_is_on_branches_stays_done_or_is_gone_on_with(repo: Path) -> None:
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
        "group B: is complete, though feature/group-B-user-reg is not merged into main; merge it before the team continues",
        "group_status.C.start_time: '$START' is not a time",
        "group_status.C.tech_lead_feedback[0].timestamp: '$START' is not a time",
    ):
        assert change in taken.out, taken
    done = rig.orc("resume", "v4_20250106_100000", "--no-wait")
    assert done.code == 0, done
    assert [turn for turn in rig.turns() if not turn.startswith("pm")] == ["C develop 3", "C qa 1", "C review 1"]
    assert "Limit the rate" in rig.prompt("C", "develop", 3)
    assert "Work on B" not in rig.git("log", "--format=%s", "main")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"orchestrator_state": {"session_id": "v4_20250106_100000"}}, "The plan of the team"),
        ({"pm_state": {"task_groups": []}}, "it has no original_requirements"),
        ({"pm_state": {"original_requirements": "a thing"}}, "it has no task_groups"),
        ({"pm_state": {"original_requirements": "a thing", "task_groups": [f"G{n}" for n in range(101)]}}, "task_groups: "),
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
            "session_id": "my team",
            "original_requirements": "a thing",
            "all_tasks": [{"id": "T1", "group_id": "Z"}, {"id": "T2", "status": "done"}],
            "task_groups": [{"id": "A", "depends_on": ["Z"], "complexity": "huge", "branch_name": None}, {"id": "../x"}],
        },
        "group_status": {"A": {"status": "busy"}, "Z": {}},
        "dev_to_qa": {
            "messages": [
                {"id": "msg_1", "group_id": "Z"},
                {"group_id": "A"},
                "hello",
                {"id": "msg_2", "group_id": "A", "subject": ["a"]},
                {"id": "msg_3", "group_id": "A", "timestamp": None},
            ]
        },
    }
    rig, taken = import_team(repo, files)
    assert taken.code == 0, taken
    for change in (
        "session_id: was 'my team', is v4_",
        "task_groups[0].depends_on: there is no group 'Z'; left out",
        "task_groups[0].complexity: ",
        "task_groups[0]: the branch of A was None, is feature/group-A",
        "task_groups[1]: the id of the group was '../x', is x",
        "all_tasks[0]: there is no group 'Z'; left out, the task is of no group",
        "group_status.A.status: ",
        "group_status.Z: left out, the plan has no such group",
        "messages/dev_to_qa.messages[0]: left out, the plan has no group 'Z'",
        "messages/dev_to_qa.messages[1]: left out, it has no id",
        "messages/dev_to_qa.messages[2]: 'hello' is not a message; left out",
        "messages/dev_to_qa.messages[3].subject: ['a'] is not a text, it is left out",
    ):
        assert change in taken.out, taken
    assert rig.file("pm_state.json")["task_groups"][0]["status"] == "assigned"
    kept = rig.file("messages/dev_to_qa.json")["messages"]
    assert [list(one.values()) for one in kept] == [[name, "A", "developer", "qa_expert", False] for name in ("msg_2", "msg_3")]
    told = rig.ask("team", "messages")
    assert (told.code, "developer → qa_expert" in told.out) == (0, True), told
    again = rig.orc("import", "coordination", "--agent-command", str(rig.program))
    assert again.code == 2, again


def test_a_finished_team_of_another_tool_is_finished_and_its_files_are_kept(repo: Path) -> None:
    files = {
        "pm_state": {
            "session_id": "bazinga_20251106_122512",
            "original_requirements": "Make all 183 tests pass",
            "all_tasks": ["T1: Find the cause", "T2: Mend it"],
            "task_groups": [{"id": "main", "tasks": ["T1: Find the cause", "T2: Mend it"], "branch_name": "main"}],
            "completed_groups": ["main"],
            "completion_percentage": 100,
            "test_status": {"passing": 183},
        }
    }
    folder = repo / "coordination"
    folder.mkdir()
    marked = b"\xef\xbb\xbf" + json.dumps(files["pm_state"], indent=3).encode()
    (folder / "pm_state.json").write_bytes(marked)
    (folder / "group_status.json").write_text("{ not yet")
    rig = TeamRig(repo)
    taken = rig.orc("import", "coordination", "--no-check")
    assert taken.code == 0, taken
    assert "Run bazinga_20251106_122512 is taken over (completed)." in taken.out
    assert "left out: test_status (a team has no such field)" in taken.out
    assert "changed: group_status.json: cannot be read" in taken.out
    assert (folder / "pm_state.json.imported").read_bytes() == marked
    assert (folder / "group_status.json.imported").read_text() == "{ not yet"
    assert rig.file("pm_state.json")["completion_percentage"] == 100
    rig.orc("resume", "bazinga_20251106_122512", "--no-wait")
    assert not (rig.side / "launches.log").exists(), "nobody is started for finished work"
    for look in (("show", "bazinga_20251106_122512"), ("team", "status"), ("usage",), ("report", "bazinga_20251106_122512")):
        assert rig.orc(*look).code == 0


def test_an_unfinished_team_needs_somebody_who_works(repo: Path) -> None:
    (repo / "coordination").mkdir()
    plan = {"original_requirements": "Mend it", "task_groups": [{"id": "main", "tasks": ["T1: Mend it"]}]}
    (repo / "coordination" / "pm_state.json").write_text(json.dumps(plan))
    refused = TeamRig(repo).orc("import", "coordination", "--no-check")
    assert (refused.code, "Nobody would work as project_manager" in refused.err) == (2, True), refused
    assert not (repo / "coordination" / "pm_state.json.imported").exists()


MINIMAL = {"agent": "claude", "model": "sonnet", "started_at": "2026-02-12T17:08:00Z", "attempt": 1, "prompt": "fix it"}


def write_records(repo: Path, kind: str, **records: dict[str, Any] | str) -> None:
    folder = repo / "state" / kind
    folder.mkdir(parents=True)
    for name, record in records.items():
        bead = name.replace("_", "-")
        told = record if isinstance(record, str) else json.dumps({"bead": bead, "repo": str(repo), **record})
        (folder / f"{bead}.json").write_text(told)


def swarm_rig(repo: Path) -> SwarmRig:
    write_records(
        repo,
        "runs",
        bd_1=MINIMAL,
        bd_2={**MINIMAL, "started_at": "'$START'", "attempt": 2, "max_retries": None},
        bd_3=MINIMAL,
        bd_4='{"bead": ',
    )
    write_records(
        repo,
        "results",
        bd_1={"status": "done", "finished_at": "2026-02-12T17:10:00Z", "attempt": 1},
        bd_2={"status": "failed", "finished_at": "2026-02-12T17:10:00Z", "attempt": 2, "reason": "tests are red"},
        bd_5={"status": "done", "finished_at": "2026-02-12T17:10:00Z", "attempt": 1},
    )
    return SwarmRig(repo)


def test_records_of_beads_become_dispatches_that_can_be_tried_again(repo: Path) -> None:
    rig = swarm_rig(repo)
    before = (repo / "state/runs/bd-2.json").read_text()
    taken = rig.orc("import", "state", "--agent-command", str(rig.agent))
    assert taken.code == 0, taken
    for told in (
        "changed: bd-1.status: from the result",
        "changed: bd-1.schema_version: set to 1",
        "changed: bd-2.run.max_retries: was missing, is 2",
        "changed: bd-3.status: was None, and nobody works on it here; is failed",
        "changed: bd-4: left out, ",
        "changed: bd-5: left out, it has no run record",
        "Run bd-1 is taken over (completed).",
        "Run bd-2 is taken over (failed); continue with `orc swarm retry bd-2`.",
        "Run bd-3 is taken over (failed)",
    ):
        assert told in taken.out, taken
    assert (repo / "state/runs/bd-2.json.imported").read_text() == before
    assert (repo / "state/runs/bd-4.json").read_text() == '{"bead": '
    assert (repo / "state/results/bd-5.json").exists()
    status = rig.ask("swarm", "status", "bd-2", "--json").json["beads"][0]
    assert (status["standing"], status["attempt"], status["error"]) == ("failed", 2, "tests are red")
    record = json.loads((repo / "state/runs/bd-2.json").read_text())
    assert (record["started_at"], record.get("duration_seconds")) == ("'$START'", None)
    (repo / "state/runs/bd-4.json").unlink()
    assert rig.orc("swarm", "validate", "--runs").code == 0
    assert rig.ask("swarm", "analyze", "--json").code == 0
    assert rig.ask("swarm", "retry", "bd-2").code == 0
    assert rig.launches("bd-2")[0].split()[2] == "3"
    assert "tests are red" in (rig.side / "prompt.bd-2.3").read_text()
    assert rig.orc("swarm", "retry", "bd-1").code == 2
    assert json.loads((repo / "state/attempts/bd-2.2.run.json").read_text())["attempt"] == 2


def test_one_record_is_taken_over_once(repo: Path) -> None:
    rig = swarm_rig(repo)
    taken = rig.ask("import", "state/runs/bd-3.json", "--json")
    assert (taken.code, taken.json["run_id"], taken.json["status"]) == (0, "bd-3", "failed"), taken
    again = rig.orc("import", "state/runs/bd-3.json")
    assert (again.code, "exists already" in again.err) == (2, True), again
    broken = rig.orc("import", "state/runs/bd-4.json")
    assert (broken.code, "bd-4.json" in broken.err) == (2, True), broken
    alone = rig.orc("import", "state/results/bd-5.json")
    assert (alone.code, "it has no run record" in alone.err) == (2, True), alone
    elsewhere = rig.orc("import", "state", "--repo", str(rig.side))
    assert (elsewhere.code, "give --repo" in elsewhere.err) == (2, True), elsewhere
