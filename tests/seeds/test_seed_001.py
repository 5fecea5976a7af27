"""Seed 001, sentence by sentence: the state file of a run of phases, on real runs; its command lines are in test_lines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.inputs import Answer
from agent_orchestrator.systems.phases.system import PHASES
from tests.acceptance.phases_rig import SMALL, WORKS, PhasesRig
from tests.acceptance.rig import wait_until
from tests.scenarios.phases_world import PhasesWorld, agent_state_schema

DATA = Path(__file__).parent / "data"
DOCUMENTS = Path(__file__).parents[1] / "scenarios" / "documents"
GOOD = {"criteria": {"it_is_good": True}}


@pytest.fixture
def rig(repo: Path) -> PhasesRig:
    return PhasesRig(repo)


def example() -> Any:
    return json.loads((DATA / "agent_state_example.json").read_text("utf-8"))


def world(document: str = "small", **options: Any) -> PhasesWorld:
    played = PhasesWorld((DOCUMENTS / f"{document}.md").read_text("utf-8"), **{"yes": True, **options})
    played.saved("plan")
    return played


def do_task(played: PhasesWorld, task: str, *, check: bool = False, changed: str = "") -> None:
    """The supervisor passes, the agent does well, and the task is committed."""
    played.agent(task, {"status": "PASS"})
    played.agent(task, GOOD)
    if check:
        played.check_end(task)
    played.saved(task)
    played.agent(task, {"status": "PASS"})
    played.saved(task, changed=changed)


def test_the_complete_example_is_accepted_by_the_schema_and_on_reading() -> None:
    """001:16–178."""
    assert [error.message for error in agent_state_schema().iter_errors(example())] == []
    assert PHASES.faults(".claude/agent-state.json", example()) == []


def test_the_file_has_the_fields_of_the_example_in_their_order_and_no_others() -> None:
    """001:16–178: every object has the keys of the example, in its order."""
    played = world()
    played.agent("1.1", {"status": "PASS", "conflicts": [{"type": "api", "details": "renamed"}]})
    learning = {"type": "insight", "lesson": "look first", "pattern": "p", "context": "c"}
    played.agent("1.1", {**GOOD, "learnings": [learning]})
    played.check_end("1.1")
    played.saved("1.1")
    played.agent("1.1", {"status": "PASS"})
    played.saved("1.1")
    do_task(played, "1.2")
    found, told = played.document(), example()
    assert list(found) == list(told)
    for name in ("orchestrator", "supervisor", "safety_bounds"):
        assert list(found[name]) == list(told[name])
    for name in ("active_agents", "completed_tasks", "pending_tasks", "learnings", "milestones", "checkpoints"):
        if found[name]:
            assert list(found[name][0]) == list(told[name][0])
    assert list(found["supervisor"]["interventions"][0]) == list(told["supervisor"]["interventions"][0])


def test_the_status_goes_from_planning_over_executing_and_reviewing_to_completed() -> None:
    """001:186–188, 438–450."""
    played = PhasesWorld((DOCUMENTS / "small.md").read_text("utf-8"))
    seen = [played.document()["orchestrator"]["status"]]
    played.saved("plan")
    played.tell(Answer(id="a", approved=True))
    seen.append(played.document()["orchestrator"]["status"])
    do_task(played, "1.1", check=True)
    do_task(played, "1.2")
    do_task(played, "2.1")
    seen.append(played.document()["orchestrator"]["status"])
    assert played.document()["orchestrator"]["outer_ralph"] is True
    played.agent("review", {"status": "CLEAN"})
    played.check_end("review")
    seen.append(played.document()["orchestrator"]["status"])
    assert seen == ["planning", "executing", "reviewing", "completed"]
    assert played.document()["orchestrator"]["outer_ralph"] is False


def test_the_phase_is_counted_from_0_and_the_task_within_its_phase() -> None:
    """001:193–202, 329–330, 399–400, 422–423."""
    played = world()
    where = played.document()["orchestrator"]
    assert (where["current_phase"], where["total_phases"], where["current_task"]) == (0, 2, "1/2")
    do_task(played, "1.1", check=True)
    do_task(played, "1.2")
    where = played.document()["orchestrator"]
    assert (where["current_phase"], where["current_task"]) == (1, "1/1")
    assert [one["phase"] for one in played.document()["checkpoints"]] == [0, 0]
    assert [one["phase"] for one in played.document()["milestones"]] == [0]


def test_the_iteration_resets_to_0_for_each_new_task() -> None:
    """001:204–206."""
    played = world()
    assert played.document()["orchestrator"]["ralph_iteration"] == 0
    played.agent("1.1", {"status": "PASS"})
    assert played.document()["orchestrator"]["ralph_iteration"] == 1
    played.agent("1.1", GOOD)
    played.check_end("1.1", 1)
    assert played.document()["orchestrator"]["ralph_iteration"] == 2
    played.agent("1.1", GOOD)
    played.check_end("1.1")
    played.saved("1.1")
    played.agent("1.1", {"status": "PASS"})
    played.saved("1.1")
    assert played.document()["orchestrator"]["ralph_iteration"] == 0


def test_the_end_time_is_null_while_it_runs_and_set_at_the_end(rig: PhasesRig) -> None:
    """001:190–191, 211–215: the document's path is absolute, times are whole seconds in UTC."""
    rig.hold("task-executor", "1.1")
    running = rig.start_phases("--yes")
    wait_until(lambda: rig.started("task-executor"))
    where = rig.state()["orchestrator"]
    assert (where["end_time"], where["task_doc"]) == (None, str(rig.repo / "task.md"))
    rig.open("go")
    assert running.end().code == 0
    where = rig.state()["orchestrator"]
    assert len(where["end_time"]) == len("2026-01-15T12:00:00Z")
    assert where["start_time"] <= where["end_time"]


def test_the_supervisors_counters_count() -> None:
    """001:221–263: checks, conflicts, fixes, re-plans, the last check, the interventions."""
    played = world()
    assert played.document()["supervisor"]["last_check"] is None
    played.agent("1.1", {"status": "AUTO_FIX", "auto_fixes": [{"file": "a.py", "issue": "names", "fix": "renamed"}]})
    played.saved("1.1")
    played.agent("1.1", GOOD)
    played.check_end("1.1")
    played.saved("1.1")
    played.agent("1.1", {"status": "RE_PLAN", "conflicts": [{"type": "security", "recommendation": "no secrets"}]})
    found = played.document()["supervisor"]
    counted = ("checks_performed", "conflicts_detected", "auto_fixes_applied", "re_plans_triggered")
    assert [found[name] for name in counted] == [2, 2, 1, 1]
    assert found["last_check"] is not None
    told = [(one["check_type"], one["conflict_type"], one["severity"], one["action"]) for one in found["interventions"]]
    assert told == [("pre_task", "pattern", "low", "auto_fix"), ("post_task", "security", "critical", "re_plan")]
    assert all(one["resolution"] for one in found["interventions"])


def test_active_agents_are_those_at_work_and_no_others() -> None:
    """001:267–286."""
    played = world()
    (agent,) = played.document()["active_agents"]
    assert (agent["type"], agent["task"], agent["iteration"], agent["status"]) == ("supervisor", "1.1", 0, "in_progress")
    played.agent("1.1", {"status": "PASS"})
    (agent,) = played.document()["active_agents"]
    assert (agent["type"], agent["iteration"]) == ("task-executor", 1)
    played.agent("1.1", GOOD)
    assert played.document()["active_agents"] == []


def test_a_completed_task_has_what_it_took() -> None:
    """001:290–319."""
    played = world()
    do_task(played, "1.1", check=True, changed="model.py schema.sql")
    (done,) = played.document()["completed_tasks"]
    assert (done["task"], done["name"], done["iterations"], done["cost"]) == ("1.1", "Model", 1, "unknown")
    assert done["files_modified"] == ["model.py", "schema.sql"]
    assert done["success_criteria_met"] == {"tests_pass": True, "it_is_good": True}
    assert done["time_elapsed"] == "0m 4s"


def test_pending_tasks_are_those_that_are_not_started() -> None:
    """001:323–336: an active task is not pending."""
    pending = world().document()["pending_tasks"]
    assert pending == [{"phase": 0, "task": "1.2", "name": "Tokens"}, {"phase": 1, "task": "2.1", "name": "Endpoints"}]


def test_the_bounds_are_shown_as_they_are_written_and_30_iterations_are_the_default() -> None:
    """001:340–360."""
    played = world("plain")
    bounds = played.document()["safety_bounds"]
    assert (bounds["max_iterations_per_task"], bounds["max_cost"], bounds["max_time"]) == (30, "unlimited", "unlimited")
    assert (bounds["cost_so_far"], bounds["elapsed_time"], bounds["warnings"]) == ("$0.00", "0h 0m 1s", [])


def test_a_learning_is_in_the_state_file_and_appended_to_the_log(rig: PhasesRig) -> None:
    """001:364–389, 554: appended; a line of somebody else's stays."""
    (rig.repo / ".claude").mkdir()
    (rig.repo / ".claude" / "learnings.jsonl").write_text('{"not": "ours"}')
    learning = {"type": "antipattern", "lesson": "no secrets", "pattern": "use variables", "context": "JWT"}
    report = {"status": "SUCCESS", "criteria": {"it_is_good": True}, "learnings": [learning]}
    rig.report("task-executor.1.1", report, also="touch work-1.1")
    assert rig.phases("--yes").code == 0
    (told,) = rig.state()["learnings"]
    assert (told["task"], told["iteration"], told["type"], told["lesson"]) == ("1.1", 1, "antipattern", "no secrets")
    lines = (rig.repo / ".claude" / "learnings.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"not": "ours"}, told]


def test_each_phase_that_is_complete_is_a_milestone_with_an_address(rig: PhasesRig) -> None:
    """001:395–409."""
    assert rig.phases("--yes").code == 0
    (milestone,) = rig.state()["milestones"]
    assert (milestone["phase"], milestone["name"]) == (0, "Only")
    path = milestone["issue_url"].removeprefix("file://")
    assert "- [x] 1.1 First" in Path(path).read_text()


def test_each_checkpoint_is_a_commit_and_a_snapshot_that_has_its_own_entry(rig: PhasesRig) -> None:
    """001:415–432, 556–557."""
    assert rig.phases("--yes").code == 0
    first, second = rig.state()["checkpoints"]
    assert (first["task"], second["task"]) == ("1.1", "1.2")
    assert (first["state_snapshot"], second["state_snapshot"]) == ("checkpoint-001.json", "checkpoint-002.json")
    assert rig.checkpoint(1)["checkpoints"] == [first]
    assert json.loads((rig.repo / ".claude" / "checkpoint.json").read_text()) == rig.checkpoint(2)
    assert rig.git("log", "-1", "--format=%(trailers:key=Orc-Checkpoint,valueonly)", first["git_sha"]).strip() == "1.1"


def test_the_state_is_written_whole_after_every_step(rig: PhasesRig) -> None:
    """001:459–481: at every moment the file is there, whole and valid."""
    running = rig.start_phases("--yes")
    wait_until((rig.repo / ".claude" / "agent-state.json").exists)
    looks = 0
    while running.process.poll() is None:
        rig.state()
        looks += 1
    assert running.end().code == 0
    assert looks > 0


def test_the_old_format_is_refused() -> None:
    """001:521–548."""
    (fault,) = PHASES.faults(".claude/agent-state.json", {"status": "executing", "current_step": 5, "total_steps": 10})
    assert fault.startswith("Migration not automatic")


def test_the_files_of_an_ended_run_are_archived(rig: PhasesRig) -> None:
    """001:566: the state is kept for a look back."""
    assert rig.phases("--yes", "--run-id", "first").code == 0
    before = rig.state()
    rig.git("switch", "--quiet", "main")
    rig.write(SMALL)
    assert rig.phases("--yes", "--run-id", "second").code == 0
    kept = json.loads((rig.repo / ".claude" / "archive" / "first" / "agent-state.json").read_text())
    assert kept["completed_tasks"] == before["completed_tasks"]
    assert (rig.repo / ".claude" / "archive" / "first" / "checkpoint-002.json").exists()


def test_the_recipe_for_a_corrupted_state_file_works(rig: PhasesRig) -> None:
    """001:573–578: copy a checkpoint over the state file, reset git to its commit, resume."""
    rig.report("task-executor.1.2", {"status": "FAILED"}, also="touch junk")
    assert rig.phases("--yes", "--no-wait", "--run-id", "again", "--max-iterations", "1").code == 4
    sha = rig.checkpoint(1)["checkpoints"][0]["git_sha"]
    subprocess.run(["sh", "-c", "cp .claude/checkpoint-001.json .claude/agent-state.json"], cwd=rig.repo, check=True)
    rig.git("reset", "--hard", "--quiet", sha)
    rig.git("clean", "--quiet", "-fd")
    rig.do("task-executor.1.2", WORKS)
    done = rig.orc("resume", "again", "--adopt-edits")
    assert done.code == 0, done
    assert "checkpoint-001.json was copied over the state file" in done.out
    assert [entry["task"] for entry in rig.state()["completed_tasks"]] == ["1.1", "1.2"]
    rig.check_numbers()


def test_a_file_that_does_not_parse_is_put_aside_and_the_journal_is_in_force(rig: PhasesRig) -> None:
    """001:573–574: never replaced by defaults."""
    assert rig.phases("--no-wait", "--run-id", "asks").code == 4
    path = rig.repo / ".claude" / "agent-state.json"
    path.write_text("{ not json")
    refused = rig.orc("resume", "asks", "--no-wait")
    assert refused.code == 2
    assert "It was put aside as agent-state.json.edited-" in refused.err
    assert rig.state()["orchestrator"]["status"] == "planning"  # There is a state file at every moment.
    assert [one.read_text() for one in path.parent.glob("*.edited-*")] == ["{ not json"]
    assert rig.orc("resume", "asks", "--no-wait").code == 4
    assert rig.state()["orchestrator"]["status"] == "planning"


def test_an_agent_taken_out_of_the_file_is_spawned_again(rig: PhasesRig) -> None:
    """001:580–582: here it was dead, too."""
    rig.hold("task-executor", "1.1")
    running = rig.start_phases("--yes", "--run-id", "stale")
    wait_until(lambda: rig.started("task-executor"))
    rig.orc("pause", "stale", "--now")
    assert running.end().code == 130
    assert rig.state()["active_agents"] == []
    rig.open("go")
    assert rig.orc("resume", "stale").code == 0
    assert len(rig.started("task-executor.1.1.1")) == 2
    assert rig.state()["completed_tasks"][0]["iterations"] == 1


def test_bounds_edited_by_hand_are_in_force(rig: PhasesRig) -> None:
    """001:584–586: extend the bounds while it is paused."""
    assert rig.phases("--no-wait", "--run-id", "asks").code == 4
    path = rig.repo / ".claude" / "agent-state.json"
    document = rig.state()
    document["safety_bounds"] |= {"max_iterations_per_task": 50, "max_time": "3h"}
    path.write_text(json.dumps(document, indent=2))
    done = rig.orc("resume", "asks", "--no-wait", "--adopt-edits")
    assert done.code == 4, done
    bounds = rig.state()["safety_bounds"]
    assert (bounds["max_iterations_per_task"], bounds["max_time"]) == (50, "3h")
