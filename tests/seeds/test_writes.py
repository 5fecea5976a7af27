"""Every write of the state files in real runs, recorded by the kernel and compared with the sequences that the seeds tell."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from agent_orchestrator.systems.loop.transitions import ALLOWED, LoopStatus
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig
from tests.scenarios.phases_world import agent_state_schema
from tests.scenarios.team_world import document_faults
from tests.seeds.writes import Writes, linux_only

pytestmark = linux_only

RUN_STATE = ".agents/runs/*/run_state.json"
P, R, W, C, F = "PENDING", "RUNNING", "WAITING_ON_HUMAN", "COMPLETED", "FAILED"


def steps(document: Any) -> list[tuple[str, int]]:
    assert WORKFLOW.faults("run_state.json", document) == []
    return [(step["status"], step["iteration_count"]) for step in document["steps"].values()]


def statuses(document: Any) -> list[str]:
    return [status for status, _ in steps(document)]


def test_a_loop_back_is_written_state_by_state(repo: Path) -> None:
    """000:404-435, 439-445: all PENDING, each start and completion, the gate's failure, the loop-back, the next start."""
    rig = Rig(repo)
    rig.play({"code_review@0": {"report": {"gate_failure": "found P0 issues"}}})
    writes = Writes(rig)
    assert rig.run().code == 0
    assert writes.told(RUN_STATE, steps) == [
        [(P, 0), (P, 0), (P, 0)],
        [(R, 0), (P, 0), (P, 0)],
        [(C, 0), (P, 0), (P, 0)],
        [(C, 0), (R, 0), (P, 0)],
        [(C, 0), (C, 0), (P, 0)],
        [(C, 0), (C, 0), (R, 0)],
        [(C, 0), (C, 0), (C, 0)],
        [(C, 0), (P, 1), (P, 1)],
        [(C, 0), (R, 1), (P, 1)],
        [(C, 0), (C, 1), (P, 1)],
        [(C, 0), (C, 1), (R, 1)],
        [(C, 0), (C, 1), (C, 1)],
    ]
    reviews = [document["steps"]["code_review"] for document in writes.to(RUN_STATE)]
    failed = next(review for review in reviews if review["status"] == C)
    assert failed["last_error"] == "Gate failure: found P0 issues", "000:419: COMPLETED, with its gate failure"
    after = reviews[reviews.index(failed) + 1]
    assert (after["status"], after["blocked_by_loop"]) == (P, "code_review")
    assert reviews[-1]["last_error"] is None


def test_an_answer_takes_a_waiting_step_to_running_and_then_to_completed(repo: Path) -> None:
    """000:446-447."""
    rig = Rig(repo)
    rig.workflow(HUMAN)
    writes = Writes(rig)
    running = rig.start_run("--run-id", "asked")
    wait_until(lambda: rig.orc("approve", "asked", "approval").code == 0)
    assert running.end().code == 0
    assert writes.told(RUN_STATE, statuses) == [[P, P], [R, P], [C, P], [C, R], [C, W], [C, R], [C, C]]


def test_a_retry_and_a_failure_are_written(repo: Path) -> None:
    """000:443: FAILED with its error, the attempts counted; while it backs off the step is PENDING (contract)."""
    rig = Rig(repo)
    rig.play({"planning": {"exit": 1, "report": None}})
    writes = Writes(rig)
    assert rig.run().code == 1
    told = writes.told(RUN_STATE, lambda document: [document["steps"]["planning"][key] for key in ("status", "attempts")])
    assert told == [[P, 0], [R, 1], [P, 1], [R, 2], [F, 2]]
    assert writes.to(RUN_STATE)[-1]["steps"]["planning"]["last_error"].startswith("Agent process exited with code 1")


def test_steps_that_are_started_again_are_written_as_pending_first(repo: Path) -> None:
    """000:374-378: the step and its dependents are reset to PENDING, completed upstream steps are preserved."""
    rig = Rig(repo)
    rig.play({"code_review": {"exit": 1, "report": None}})
    assert rig.run("--max-attempts", "1").code == 1
    rig.play({})
    writes = Writes(rig)
    assert rig.run("--start-at-step", "coding").code == 0
    assert writes.told(RUN_STATE, statuses) == [[C, P, P], [C, R, P], [C, C, P], [C, C, R], [C, C, C]]


def test_a_run_of_phases_writes_each_of_its_changes(repo: Path) -> None:
    """001:423-440 the status, 448-456 when the file is written: transition, completion, iteration, check, checkpoint."""
    rig = PhasesRig(repo)
    writes = Writes(rig)
    assert rig.orc(*rig.arguments("--yes")).code == 0

    def tell(document: Any) -> list[Any]:
        assert [error.message for error in agent_state_schema().iter_errors(document)] == []
        orchestrator, supervisor = document["orchestrator"], document["supervisor"]
        done = len(document["completed_tasks"])
        assert done == len(document["checkpoints"]), "a completed task is a checkpoint"
        at_work = [agent["type"] for agent in document["active_agents"]]
        where = [orchestrator["status"], orchestrator["current_task"], orchestrator["ralph_iteration"]]
        return [*where, done, supervisor["checks_performed"], *at_work]

    def task(number: int) -> list[list[Any]]:
        place, done, checks = f"{number}/2", number - 1, 2 * (number - 1)
        return [
            ["executing", place, 0, done, checks],
            ["executing", place, 0, done, checks, "supervisor"],
            ["executing", place, 0, done, checks + 1],
            ["executing", place, 1, done, checks + 1, "task-executor"],
            ["executing", place, 1, done, checks + 1],
            ["executing", place, 1, done, checks + 1, "supervisor"],
            ["executing", place, 1, done, checks + 2],
        ]

    assert writes.told(".claude/agent-state.json", tell) == [
        ["planning", "0/2", 0, 0, 0],
        *task(1),
        *task(2),
        ["executing", "2/2", 0, 2, 4],
        ["reviewing", "2/2", 1, 2, 4],
        ["reviewing", "2/2", 1, 2, 4, "code-improvement-scanner"],
        ["completed", "2/2", 0, 2, 4],
    ]


def test_a_team_writes_each_hand_over(repo: Path) -> None:
    """002:11-22 all files from the first moment; 253-264 the words of a group, 477-485 those of the whole, in their order."""
    rig = TeamRig(repo)
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    rig.says("A.qa.1", status="FAIL", failures=["it crashes"], summary="It crashes.")
    writes = Writes(rig)
    assert rig.orc(*rig.team_arguments(requirements="One thing")).code == 0
    for name in ("orchestrator_state", "group_status", "pm_state"):
        assert not [fault for document in writes.to(f"coordination/{name}.json") for fault in document_faults(name, document)]
    assert writes.told("coordination/orchestrator_state.json", lambda document: document["current_phase"]) == [
        *("initialization", "pm_planning", "developer_working", "qa_testing", "developer_working", "qa_testing"),
        *("tech_review", "pm_final_check", "completed"),
    ]
    groups = writes.told("coordination/group_status.json", lambda document: {key: one["status"] for key, one in document.items()})
    assert groups[0] == {}
    assert [group["A"] for group in groups[1:]] == [
        *("pending", "dev_working", "waiting_qa", "qa_testing", "qa_failed", "dev_working", "waiting_qa", "qa_testing"),
        *("waiting_review", "tech_review", "complete"),
    ]
    progress = writes.told(
        "coordination/pm_state.json", lambda document: [document["completion_percentage"], *document["in_progress_groups"]]
    )
    assert progress == [[0.0], [0.0, "A"], [100.0]]
    for box, words in (("dev_to_qa", 2), ("qa_to_techlead", 2), ("techlead_to_dev", 1)):
        counts = writes.told(f"coordination/messages/{box}.json", lambda document: len(document["messages"]))
        assert counts == list(range(words + 1)), box


def test_a_loop_writes_each_check_and_every_status_on_its_way(repo: Path) -> None:
    """003:253-290: created, updated with each iteration, each check recorded, running to completing to completed."""
    rig = LoopRig(repo)
    rig.do("touch done", 2)
    rig.do("echo $ITERATION > n")
    writes = Writes(rig)
    assert rig.loop().code == 0

    def tell(document: Any) -> list[Any]:
        checks = document["progress"]["completion_checks"]
        assert (checks[-1] if checks else None) == document["progress"]["last_completion_check"]
        return [document["status"], document["iteration"], [check["passed"] for check in checks], bool(document["completed_at"])]

    told = writes.told(".aiwg/ralph/loops/*/state.json", tell)
    assert told == [
        ["running", 0, [], False],
        ["running", 0, [False], False],
        ["running", 1, [False, False], False],
        ["running", 2, [False, False, True], False],
        ["completing", 2, [False, False, True], False],
        ["completed", 2, [False, False, True, True], True],
    ]
    ways = list(dict.fromkeys(LoopStatus(one[0]) for one in told))
    assert all(after in ALLOWED[before] for before, after in pairwise(ways))


def test_a_bead_is_recorded_when_it_is_dispatched_and_when_it_completes(repo: Path) -> None:
    """004:162-164: the run record first, then the result; each attempt of its own, `running` before its end."""
    rig = SwarmRig(repo)
    rig.do('[ "$STEP_ATTEMPT" = 2 ] || exit 1')
    writes = Writes(rig)
    assert rig.orc(*rig.arguments("bd-1", "--max-retries", "2")).code == 0
    told = writes.told("state/runs/bd-1.json", lambda document: [document["attempt"], document["status"]])
    assert told == [[1, "running"], [1, "failed"], [2, "running"], [2, "done"]]
    results = writes.told("state/results/bd-1.json", lambda document: [document["attempt"], document["status"]])
    assert results == [[1, "failed"], [2, "done"]]
