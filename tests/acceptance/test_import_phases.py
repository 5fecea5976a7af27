"""`orc import` of `.claude/agent-state.json`: the seed's example, sloppy files, and what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.phases_rig import FOUR_PHASES, SMALL, PhasesRig
from tests.acceptance.rig import Result

DATA = Path(__file__).parents[1] / "seeds" / "data"


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
        "changed: branch: work continues on phases/user-auth",
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
    assert (refused.code, "checkpoint-001 was not made here: it was taken over from a file" in refused.err) == (2, True), refused


def test_a_sloppy_phases_file_is_read_as_far_as_it_can_be(repo: Path) -> None:
    rig = phases_rig(repo, SMALL)
    sloppy = {
        "orchestrator": {"status": "failed", "start_time": "$START", "end_time": None},
        "supervisor": None,
        "active_agents": [{"type": "task-executor", "task": ["1.2"]}, None],
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
        "active_agents: task-executor of task ['1.2'] does not work here",
        "completed_tasks[1]: 9.9 ('gone') is done; the task document has no such task",
        "completed_tasks[2]: no entry",
        "completed_tasks[0].cost: was missing, is 'unknown'",
        "left out: pending_tasks[1]: 1.1 is completed",
        "left out: pending_tasks[3]: 'soon' is no task",
        "safety_bounds.max_cost: ",
        "safety_bounds.cost_so_far: ",
        "safety_bounds.elapsed_time: ",
        "left out: checkpoints: '../../etc/passwd' of task '1.1', it is no checkpoint",
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


WILD = {
    "workflow": "small",
    "mode": "automated",
    "phase": "complete",
    "iteration": 15,
    "maxIterations": 50,
    "budget_consumed": 3.5,
    "budget_limit": 20,
    "time_started": "2026-01-28T00:00:00Z",
    "time_completed": "2026-01-28T01:30:00Z",
    "current_task": "all of them",
    "completedTasks": ["Setup: make a branch", "1.1: First", "Second"],
    "pending_tasks": [],
    "status": "SUCCESS - nothing is left",
}


def test_a_flat_file_in_other_words_stays_done_and_every_field_is_told(repo: Path) -> None:
    rig = phases_rig(repo, SMALL)
    taken = import_phases(rig, WILD)
    assert taken.code == 0, taken
    assert "is taken over (completed)." in taken.out
    state = rig.state()
    assert [one["task"] for one in state["completed_tasks"]] == ["1.1", "1.2"]
    assert (state["orchestrator"]["end_time"], state["safety_bounds"]["max_cost"]) == ("2026-01-28T01:30:00Z", "$20")
    told = [line for line in taken.out.splitlines() if line.startswith(("taken: ", "changed: ", "left out: "))]
    assert all(any(line.partition(": ")[2].startswith(name) for line in told) for name in WILD), told
    assert json.loads((rig.repo / ".claude/agent-state.json.imported").read_text()) == WILD


def test_pending_tasks_as_texts_keep_their_order_and_names(repo: Path) -> None:
    rig = phases_rig(repo, SMALL)
    head = {"status": "planning", "task_doc": "task.md", "current_phase": 0, "total_phases": 1}
    bounds = {"max_iterations_per_task": 30, "max_cost": 10, "max_time_hours": 2}
    taken = import_phases(rig, {"orchestrator": head, "pending_tasks": ["1.1: First", "1.2: Two"], "safety_bounds": bounds})
    assert taken.code == 0, taken
    state = rig.state()
    assert [(one["task"], one["name"]) for one in state["pending_tasks"]] == [("1.1", "First"), ("1.2", "Two")]
    assert (state["safety_bounds"]["max_cost"], state["safety_bounds"]["max_time"]) == ("$10", "2h")
