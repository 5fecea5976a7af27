"""Seed 000, sentence by sentence: the state file, its fields, the library names. The lines are cited in each docstring.

What can only be shown with the command line is in test_seed_000_commands.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import RunAgent, Wait
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Answer, HumanAnswered, Resume, TimerFired
from agent_orchestrator.core.units import from_iso, iso
from agent_orchestrator.models import StepStatus
from agent_orchestrator.systems.workflow.decide.edits import check_state_document
from agent_orchestrator.systems.workflow.documents import RunDocument
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import RUN, World, failing, run_state_schema

DATA = Path(__file__).parent / "data"
EXAMPLES = sorted(DATA.glob("run_state_example_*.json"))
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
STEP_FIELDS = [
    *("status", "attempts", "iteration_count", "report_path", "started_at", "ended_at", "last_error", "artifacts"),
    *("metrics", "logs", "manual_input_path", "blocked_by_loop"),
]
TOP_FIELDS = [
    *("run_id", "workflow_name", "repo_dir", "reports_dir", "manual_inputs_dir", "created_at", "updated_at", "steps"),
]
WORKFLOW_FILE = """\
name: workflow
steps:
  - {id: planning, agent: planner, prompt: plan.md}
  - {id: coding, agent: coder, prompt: code.md, needs: [planning]}
  - {id: code_review, agent: reviewer, prompt: review.md, needs: [coding], loop_back_to: coding}
"""
HUMAN_FILE = """\
name: workflow
steps:
  - {id: manual_approval, agent: presenter, prompt: p.md, human_in_the_loop: true}
  - {id: deploy, agent: deployer, prompt: p.md, needs: [manual_approval]}
"""


def at_review() -> World:
    world = World(WORKFLOW_FILE)
    world.agent("planning")
    world.agent("coding", {"artifacts": ["src/api/auth.py"], "logs": ["Implemented"]})
    return world


def waiting() -> World:
    world = World(HUMAN_FILE)
    world.agent("manual_approval", {})
    return world


# The file


def test_the_state_file_is_where_the_seed_says() -> None:
    """000:19-26: <repo>/.agents/runs/<run_id>/run_state.json."""
    (document,) = WORKFLOW.documents(World(WORKFLOW_FILE).state, 0)
    assert document.path == f".agents/runs/{RUN}/run_state.json"


def test_the_document_is_one_object_with_these_fields_in_this_order() -> None:
    """000:30-43: a single JSON object; all fields required."""
    assert list(World(WORKFLOW_FILE).document()) == TOP_FIELDS
    assert list(RunDocument.__struct_fields__) == TOP_FIELDS


def test_the_names_of_the_run() -> None:
    """000:36-37: run_id; workflow_name from the workflow YAML."""
    document = World(WORKFLOW_FILE).document()
    assert (document["run_id"], document["workflow_name"]) == (RUN, "workflow")


def test_the_directories_are_absolute() -> None:
    """000:38-40 and 87-89: repo_dir, reports_dir, manual_inputs_dir."""
    document = World(WORKFLOW_FILE).document()
    assert document["repo_dir"] == "/repo"
    assert document["reports_dir"] == f"/repo/.agents/runs/{RUN}/reports"
    assert document["manual_inputs_dir"] == f"/repo/.agents/runs/{RUN}/manual_inputs"


def test_created_at_stays_and_updated_at_moves() -> None:
    """000:41-42: when the run was created; the last state update."""
    world = World(WORKFLOW_FILE)
    first = world.document()
    world.agent("planning")
    second = world.document()
    assert first["created_at"] == second["created_at"] == first["updated_at"]
    assert second["updated_at"] == iso(world.now_us)


def test_steps_map_ids_to_runtimes_in_the_order_of_the_file() -> None:
    """000:43-49: key is the step id from the workflow definition."""
    assert list(World(WORKFLOW_FILE).document()["steps"]) == ["planning", "coding", "code_review"]


def test_a_step_has_twelve_fields_in_this_order() -> None:
    """000:51-64: all required."""
    for step in World(WORKFLOW_FILE).document()["steps"].values():
        assert list(step) == STEP_FIELDS


def test_a_step_that_has_not_started_is_empty() -> None:
    """000:53-64 and 124-137: counters start at 0, paths, times and errors are null, lists empty."""
    assert World(WORKFLOW_FILE).document()["steps"]["code_review"] == {
        "status": "PENDING",
        "attempts": 0,
        "iteration_count": 0,
        "report_path": None,
        "started_at": None,
        "ended_at": None,
        "last_error": None,
        "artifacts": [],
        "metrics": {},
        "logs": [],
        "manual_input_path": None,
        "blocked_by_loop": None,
    }


def test_the_status_values_are_these_six() -> None:
    """000:66-77: the StepStatus enum."""
    assert [status.value for status in StepStatus] == ["PENDING", "RUNNING", "WAITING_ON_HUMAN", "COMPLETED", "FAILED", "SKIPPED"]


def test_a_skipped_step_is_skipped_due_to_workflow_conditions() -> None:
    """000:77."""
    world = World("name: w\nsteps: [{id: a, agent: x, prompt: p, when: vars.go == 'yes'}]")
    assert world.statuses() == {"a": "SKIPPED"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_of_the_seed_is_accepted(path: Path) -> None:
    """000:79-278: examples 1 to 4."""
    document = json.loads(path.read_text("utf-8"))
    assert check_state_document(document) == []
    assert [error.message for error in run_state_schema().iter_errors(document)] == []


def test_there_are_four_examples() -> None:
    """000:81, 142, 189, 236."""
    assert len(EXAMPLES) == 4


def test_example_1_comes_about() -> None:
    """000:81-140: planning COMPLETED with its results, coding RUNNING, code_review PENDING."""
    world = World(WORKFLOW_FILE)
    world.agent("planning", {"artifacts": ["PLAN.md", "tasks.yaml"], "logs": ["Created development plan in PLAN.md"]})
    planning, coding, review = world.document()["steps"].values()
    assert (planning["status"], planning["attempts"], planning["artifacts"]) == ("COMPLETED", 1, ["PLAN.md", "tasks.yaml"])
    assert planning["report_path"] == f"/repo/.agents/runs/{RUN}/reports/{RUN}__planning.json"
    assert (coding["status"], coding["attempts"], coding["report_path"], coding["ended_at"]) == ("RUNNING", 1, None, None)
    assert review["status"] == "PENDING"


def test_example_2_comes_about() -> None:
    """000:142-187: in iteration 2 the reviewer RUNS with its old report's path and no results of the earlier iteration."""
    world = at_review()
    for _ in range(2):
        world.agent("code_review", {"gate_failure": True, "logs": ["issues"]})
        world.agent("coding")
    review = world.document()["steps"]["code_review"]
    assert (review["status"], review["attempts"], review["iteration_count"]) == ("RUNNING", 1, 2)
    assert review["report_path"].endswith(f"{RUN}__code_review.json")
    assert (review["artifacts"], review["metrics"], review["logs"], review["blocked_by_loop"]) == ([], {}, [], None)


def test_example_3_comes_about() -> None:
    """000:189-234: a failed step keeps its error, its attempts and the logs of its report."""
    world = World(WORKFLOW_FILE)
    world.agent("planning")
    error = "Agent process exited with code 1: SyntaxError in generated code"
    for attempt in (1, 2):
        world.agent("coding", {"logs": ["Attempted to implement feature"]}, failure=failing(FailureKind.EXIT, error))
        if attempt == 1:
            world.tell(TimerFired(effect=world.doing("coding").id))
    coding = world.document()["steps"]["coding"]
    assert (coding["status"], coding["attempts"], coding["iteration_count"]) == ("FAILED", 2, 0)
    assert (coding["last_error"], coding["logs"]) == (error, ["Attempted to implement feature"])
    assert coding["ended_at"] is not None


def test_example_4_comes_about() -> None:
    """000:236-278: a human step WAITS with its manual_input_path."""
    step = waiting().document()["steps"]["manual_approval"]
    assert (step["status"], step["attempts"], step["ended_at"]) == ("WAITING_ON_HUMAN", 1, None)
    assert step["manual_input_path"] == f"/repo/.agents/runs/{RUN}/manual_inputs/{RUN}__manual_approval.json"


# Semantics


def test_every_timestamp_is_iso_8601_in_utc_with_six_decimals() -> None:
    """000:284-289: YYYY-MM-DDTHH:MM:SS.mmmmmmZ."""
    world = at_review()
    document = world.document()
    times = [document["created_at"], document["updated_at"]]
    times += [step[key] for step in document["steps"].values() for key in ("started_at", "ended_at") if step[key]]
    assert len(times) == 7
    assert all(TIMESTAMP.fullmatch(time) for time in times)
    assert iso(from_iso("2025-01-15T14:30:00.123456Z")) == "2025-01-15T14:30:00.123456Z"


def test_whole_seconds_are_printed_with_six_decimals_too() -> None:
    """000:98: 2025-01-15T14:30:05.000000Z."""
    assert iso(from_iso("2025-01-15T14:30:05Z")) == "2025-01-15T14:30:05.000000Z"


def test_attempts_count_retries_of_the_same_iteration() -> None:
    """000:295: transient failures, --max-attempts, default 2."""
    world = World(WORKFLOW_FILE)
    assert world.spec.max_attempts == 2
    world.agent("planning", failure=failing(FailureKind.EXIT))
    assert isinstance(world.doing("planning"), Wait)
    world.tell(TimerFired(effect=world.doing("planning").id))
    assert (world.step("planning").attempts, world.step("planning").iteration_count) == (2, 0)
    world.agent("planning", failure=failing(FailureKind.EXIT))
    assert world.step("planning").status == "FAILED"


def test_iteration_count_counts_loop_backs() -> None:
    """000:297: quality gates, --max-iterations, default 4."""
    world = at_review()
    assert world.spec.max_iterations == 4
    world.agent("code_review", {"gate_failure": True})
    assert (world.step("coding").iteration_count, world.step("coding").attempts) == (1, 1)


def test_iteration_count_3_is_the_fourth_execution() -> None:
    """000:299-306 is overruled by 000:402-412 and the contract: the first execution has count 0, so count 3 is the fourth."""
    world = at_review()
    executions = 1
    for _ in range(3):
        world.agent("code_review", {"gate_failure": True})
        executions += 1
        if executions < 4:
            world.agent("coding")
    assert (world.step("coding").iteration_count, executions) == (3, 4)


def test_artifacts_are_relative_to_the_repository() -> None:
    """000:310-321: absolute paths are {repo_dir}/{artifact_path}."""
    world = World(WORKFLOW_FILE)
    world.agent("planning", {"artifacts": ["PLAN.md", "/repo/src/api/handlers.py", "./tests/test_handlers.py"]})
    document = world.document()
    artifacts = document["steps"]["planning"]["artifacts"]
    assert artifacts == ["PLAN.md", "src/api/handlers.py", "tests/test_handlers.py"]
    assert f"{document['repo_dir']}/{artifacts[1]}" == "/repo/src/api/handlers.py"


def test_all_metric_values_are_strings() -> None:
    """000:325-336."""
    world = World(WORKFLOW_FILE)
    world.agent("planning", {"metrics": {"test_coverage": 87.5, "lines_changed": 245, "files_modified": "8"}})
    metrics = world.document()["steps"]["planning"]["metrics"]
    assert metrics == {"test_coverage": "87.5", "lines_changed": "245", "files_modified": "8"}


def test_blocked_by_loop_names_the_gate_until_the_step_starts() -> None:
    """000:351-358: downstream steps are marked with the step that caused the loop."""
    world = at_review()
    world.agent("code_review", {"gate_failure": True})
    assert world.step("code_review").blocked_by_loop == "code_review"
    assert world.step("coding").blocked_by_loop is None
    world.agent("coding")
    assert world.step("code_review").blocked_by_loop is None


# Operational workflows


def test_start_at_step_resets_the_step_and_its_dependents_and_keeps_what_is_above() -> None:
    """000:374-378: reset to PENDING downstream, completed upstream preserved, resumed from the step."""
    world = at_review()
    world.agent("code_review", {})
    world.tell(Resume(id="r", changes={"start_at": "coding"}))
    assert world.statuses() == {"planning": "COMPLETED", "coding": "RUNNING", "code_review": "PENDING"}
    assert world.step("code_review").report_path is not None


def test_a_gate_failure_with_loop_back_completes_the_step_first() -> None:
    """000:400-402 and 409-415: COMPLETED with "Gate failure: …" before anything is reset."""
    world = at_review()
    events = world.agent("code_review", {"gate_failure": "found P0 issues"})
    kinds = [type(event).__name__ for event in events]
    assert kinds[:3] == ["AgentFinished", "GateFailed", "LoopedBack"]
    state = WORKFLOW.fresh(world.spec, world.context)
    for event, at_us in world.journal:
        WORKFLOW.evolve(state, event, at_us)
        if type(event).__name__ == "GateFailed":
            break
    review = state.steps["code_review"]
    assert (review.status, review.iteration_count, review.last_error) == ("COMPLETED", 0, "Gate failure: found P0 issues")


def test_the_target_and_all_downstream_count_one_iteration_more_and_are_pending() -> None:
    """000:403-404 and 417-423."""
    world = at_review()
    world.agent("code_review", {"gate_failure": True})
    world_after = {step: runtime.iteration_count for step, runtime in world.state.steps.items()}
    assert world_after == {"planning": 0, "coding": 1, "code_review": 1}
    assert world.step("code_review").status == "PENDING"


def test_the_second_iteration_passes() -> None:
    """000:425-431."""
    world = at_review()
    world.agent("code_review", {"gate_failure": True})
    world.agent("coding")
    world.agent("code_review", {"gate_failure": False})
    assert world.statuses() == {"planning": "COMPLETED", "coding": "COMPLETED", "code_review": "COMPLETED"}
    assert (world.step("coding").iteration_count, world.step("code_review").iteration_count) == (1, 1)


def test_at_the_limit_the_step_fails() -> None:
    """000:405: if iteration_count reaches --max-iterations, FAILED."""
    world = World(WORKFLOW_FILE, max_iterations=1)
    world.agent("planning")
    world.agent("coding")
    world.agent("code_review", {"gate_failure": True})
    assert world.step("code_review").status == "FAILED"
    assert "Gate failure" in (world.step("code_review").last_error or "")


# State mutation events


def test_a_workflow_starts_with_all_steps_pending() -> None:
    """000:437."""
    world = World(WORKFLOW_FILE)
    fresh = WORKFLOW.fresh(world.spec, world.context)
    assert {step.status for step in fresh.steps.values()} == {"PENDING"}


def test_a_step_start_sets_running_and_started_at() -> None:
    """000:438."""
    step = World(WORKFLOW_FILE).step("planning")
    assert (step.status, step.started_at) == ("RUNNING", "2025-01-15T14:30:00.123456Z")


def test_a_completion_sets_ended_at_artifacts_and_logs() -> None:
    """000:439."""
    step = at_review().step("coding")
    assert (step.status, step.artifacts, step.logs) == ("COMPLETED", ["src/api/auth.py"], ["Implemented"])
    assert step.ended_at is not None


def test_a_failure_sets_last_error_and_attempts_were_counted_at_the_launch() -> None:
    """000:440 is overruled by the contract: `attempts` counts launches, so a failure adds nothing to it."""
    world = World(WORKFLOW_FILE, max_attempts=1)
    assert world.step("planning").attempts == 1
    world.agent("planning", failure=failing(FailureKind.EXIT, "boom"))
    step = world.step("planning")
    assert (step.status, step.last_error, step.attempts) == ("FAILED", "boom", 1)


def test_manual_input_takes_the_step_from_waiting_to_running() -> None:
    """000:443: before its check, or its end, it is RUNNING."""
    world = World(HUMAN_FILE.replace("human_in_the_loop: true", "human_in_the_loop: true, check: make"))
    world.agent("manual_approval", {})
    world.tell(HumanAnswered(effect=world.doing("manual_approval").id, approved=True))
    assert world.step("manual_approval").status == "RUNNING"


def test_a_rejection_never_approves() -> None:
    """000:347 and the contract: the file says yes or no, and no is no."""
    world = waiting()
    world.tell(Answer(id="d", approved=False))
    assert world.statuses() == {"manual_approval": "FAILED", "deploy": "PENDING"}


def test_the_agent_of_a_human_step_is_told_where_the_answer_will_be() -> None:
    """000:340-345: manual_inputs/<run>__<step>.json."""
    effect = World(HUMAN_FILE).doing("manual_approval")
    assert isinstance(effect, RunAgent)
    assert effect.answer_file == f".agents/runs/{RUN}/manual_inputs/{RUN}__manual_approval.json"


# By hand


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "DONE"), ("started_at", "15.1.2025"), ("attempts", "two"), ("logs", None)],
)
def test_a_hand_edit_must_keep_fields_statuses_and_times(field: str, value: Any) -> None:
    """000:497-501: required fields, status values of the enum, timestamp format."""
    document = at_review().document()
    document["steps"]["coding"][field] = value
    assert check_state_document(document)[0].startswith(f"steps.coding.{field}: ")
