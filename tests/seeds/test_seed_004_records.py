"""Seed 004: every field of the records, every note about them. Each test cites its lines, and the contract where it overrules."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from agent_orchestrator.analysis.records import Record, decode_record, merge_records
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.runs.swarm.repair import repair_record
from agent_orchestrator.systems.swarm.faults import faults_of
from agent_orchestrator.systems.swarm.schema import FILES, RESULT, RUN
from tests.scenarios.swarm_world import SwarmWorld

MINIMAL_RUN = {
    "bead": "bd-xyz", "agent": "claude", "model": "sonnet", "repo": "/path/to/repo", "started_at": "2026-02-12T17:08:00Z",
    "attempt": 1, "prompt": "Task description from dispatcher",
}  # fmt: skip
FULL_RUN = {
    "schema_version": 1, "bead": "bd-xyz", "agent": "claude", "model": "sonnet", "repo": "/path/to/repo",
    "prompt": "Task description", "prompt_hash": "abc123...", "started_at": "2026-02-12T17:08:00Z",
    "finished_at": "2026-02-12T17:10:00Z", "duration_seconds": 120, "status": "done", "attempt": 1, "max_retries": 2,
    "session_name": "agent-bd-xyz", "result_file": "state/results/bd-xyz.json", "exit_code": 0,
}  # fmt: skip
MINIMAL_RESULT = {"bead": "bd-xyz", "status": "done", "finished_at": "2026-02-12T17:10:00Z", "attempt": 1}
FULL_RESULT = {
    "schema_version": 1, "bead": "bd-xyz", "agent": "codex", "status": "done", "reason": "Completed task description",
    "started_at": "2026-02-12T17:08:00Z", "finished_at": "2026-02-12T17:10:00Z", "duration_seconds": 120, "attempt": 1,
    "max_retries": 2, "will_retry": False, "exit_code": 0, "session_name": "agent-bd-xyz",
}  # fmt: skip
EXIT = Failure(kind=FailureKind.EXIT, message="Agent process exited with code 1: boom")
TIMEOUT = Failure(kind=FailureKind.TIMEOUT, message="Stopped after running for 60s, its time limit.")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")


def run(world: SwarmWorld, name: str = "bd-1") -> dict[str, Any]:
    found: dict[str, Any] = world.documents()[f"state/runs/{name}.json"]
    return found


def result(world: SwarmWorld, name: str = "bd-1") -> dict[str, Any]:
    found: dict[str, Any] = world.documents()[f"state/results/{name}.json"]
    return found


def done(**bead: Any) -> SwarmWorld:
    world = SwarmWorld.dispatched(**bead)
    world.agent("bd-1", {"status": "done", "reason": "did it"}, tail="x" * 600)
    return world


def test_the_records_stand_where_the_seed_says() -> None:
    """004:7–18, 20, 92."""
    assert list(done().documents()) == [
        *("state/runs/bd-1.json", "state/results/bd-1.json"),
        *("state/attempts/bd-1.1.run.json", "state/attempts/bd-1.1.result.json"),
    ]


def test_a_run_record_is_created_when_an_agent_is_dispatched() -> None:
    """004:22, 162; 004:94, 164: the result when it completes."""
    world = SwarmWorld.dispatched()
    assert list(world.documents()) == ["state/runs/bd-1.json"]
    assert run(world)["status"] == "running"


def test_the_minimal_examples_are_read() -> None:
    """004:24–36, 96–105."""
    merged = merge_records(decode_record(json.dumps(MINIMAL_RUN).encode()), decode_record(json.dumps(MINIMAL_RESULT).encode()))
    assert merged is not None
    assert (merged.status, merged.duration_s, merged.agent, merged.attempt) == ("done", 120.0, "claude", 1)


def test_the_full_example_of_a_run_is_read_and_only_lacks_what_its_own_table_requires() -> None:
    """004:38–58 against 004:71."""
    assert merge_records(decode_record(json.dumps(FULL_RUN).encode()), None) is not None
    assert faults_of("run", FULL_RUN) == ['"prompt_full" is a required property']
    assert faults_of("run", repair_record("run", FULL_RUN, None).document) == []


def test_the_full_example_of_a_result_satisfies_the_schema() -> None:
    """004:107–125."""
    assert faults_of("result", FULL_RESULT) == []


def test_our_records_have_the_seeds_fields_in_its_order_and_no_others() -> None:
    """004:40–57, 110–124; fields that only the tables name (004:71, 80–82, 144) stand beside their neighbours or at the end."""
    written, ended = run(done(template="feature")), result(done())
    seed = [name for name in written if name in FULL_RUN]
    assert seed == list(FULL_RUN)
    assert [name for name in written if name not in FULL_RUN] == [
        *("prompt_full", "output_summary", "failure_reason", "template_name"),
    ]
    assert list(ended) == [*FULL_RESULT, "output_summary"]


@pytest.mark.parametrize("name", ["bead", "agent", "model", "repo", "started_at", "attempt", "prompt", "prompt_full"])
def test_a_run_requires(name: str) -> None:
    """004:64–71."""
    assert name in RUN["required"]
    assert name in run(SwarmWorld.dispatched())


@pytest.mark.parametrize("name", ["bead", "status", "finished_at", "attempt", "agent"])
def test_a_result_requires(name: str) -> None:
    """004:131–134, 136."""
    assert name in RESULT["required"]
    assert name in result(done())


@pytest.mark.parametrize("table", ["run", "result"])
def test_every_field_has_the_type_of_the_table(table: str) -> None:
    """004:64–82, 131–144."""
    integers = {"attempt", "duration_seconds", "max_retries", "exit_code", "schema_version"}
    for name, rule in (RUN if table == "run" else RESULT)["properties"].items():
        types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        expected = "integer" if name in integers else "boolean" if name == "will_retry" else "string"
        if name != "verification":
            required = (RUN if table == "run" else RESULT)["required"]
            assert types == ([expected] if name in required else [expected, "null"])


@pytest.mark.parametrize("bead", ["bd-xyz", "bd-a1.2", "PROJ_7", "9"])
def test_any_bead_id_is_accepted(bead: str) -> None:
    """004:64, widened by the contract to [A-Za-z0-9][A-Za-z0-9._-]*."""
    assert run(SwarmWorld.dispatched(bead), bead)["bead"] == bead


def test_agent_and_model_are_those_given() -> None:
    """004:65, 66; open beyond claude and codex, and `default` where no model is named (contract)."""
    written = run(SwarmWorld.dispatched(agent={"name": "codex", "model": "gpt-5.3-codex", "adapter": "command"}))
    assert (written["agent"], written["model"]) == ("codex", "gpt-5.3-codex")
    assert run(SwarmWorld.dispatched(agent={"name": "mine", "adapter": "command"}))["model"] == "default"


def test_the_repository_is_absolute() -> None:
    """004:67."""
    assert run(SwarmWorld.dispatched(repo="/path/to/repo"))["repo"] == "/path/to/repo"


def test_times_are_iso_8601() -> None:
    """004:68, 73, 133, 138; whole seconds, UTC (contract, common)."""
    written = run(done())
    assert STAMP.match(written["started_at"])
    assert STAMP.match(written["finished_at"])
    assert result(done())["started_at"] == written["started_at"]


def test_attempts_count_from_one_and_up() -> None:
    """004:69, 134."""
    world = SwarmWorld.dispatched()
    assert run(world)["attempt"] == 1
    world.agent("bd-1", failure=EXIT)
    assert (run(world)["attempt"], result(world)["attempt"]) == (1, 1)
    world.timer("bd-1")
    assert run(world)["attempt"] == 2


def test_the_prompt_is_cut_at_200_characters_and_kept_whole_beside() -> None:
    """004:70, 71, 72."""
    written = run(SwarmWorld.dispatched(prompt="é" * 300))
    assert (written["prompt"], written["prompt_full"]) == ("é" * 200, "é" * 300)
    assert written["prompt_hash"] == hashlib.sha256(("é" * 300).encode()).hexdigest()


def test_duration_is_in_whole_seconds_and_that_of_the_times() -> None:
    """004:74, 139."""
    world = SwarmWorld.dispatched()
    world.now_us += 120_000_000
    world.agent("bd-1")
    written = run(world)
    assert written["duration_seconds"] == result(world)["duration_seconds"] == 121


def test_the_limit_on_attempts_is_recorded() -> None:
    """004:76, 140: the number of attempts in total (contract)."""
    assert (run(done())["max_retries"], result(done())["max_retries"]) == (2, 2)
    assert run(SwarmWorld.dispatched(max_attempts=3, attempts_before=2))["max_retries"] == 5


def test_the_session_is_named_after_the_bead() -> None:
    """004:77, 143."""
    assert run(done())["session_name"] == result(done())["session_name"] == "agent-bd-1"


def test_the_result_file_is_named() -> None:
    """004:78."""
    assert run(done())["result_file"] in done().documents()


def test_the_exit_code_is_null_where_there_is_none() -> None:
    """004:79, 142."""
    assert run(done())["exit_code"] == 0
    world = SwarmWorld.dispatched(max_attempts=1)
    world.agent("bd-1", failure=Failure(kind=FailureKind.LOST, message="gone"), exit_code=None)
    assert (run(world)["exit_code"], result(world)["exit_code"]) == (None, None)
    assert run(SwarmWorld.dispatched())["exit_code"] is None, "not known yet"


def test_the_output_summary_is_the_last_500_characters() -> None:
    """004:80, 144; of plain output (contract)."""
    assert run(done())["output_summary"] == result(done())["output_summary"] == "x" * 500


@pytest.mark.parametrize(
    ("kind", "exit_code", "status", "reason"),
    [
        (FailureKind.EXIT, 3, "failed", "exit-3"),
        (FailureKind.EXIT, 137, "failed", "signal-9"),
        (FailureKind.TIMEOUT, 143, "timeout", "timeout-3600s"),
        (FailureKind.REPORT_INVALID, 0, "failed", "report-invalid"),
        (FailureKind.LAUNCH, None, "failed", "launch-failed"),
        (FailureKind.LOST, None, "failed", "lost"),
        (FailureKind.OUTPUT_LIMIT, 143, "failed", "output-limit"),
        (FailureKind.REPORTED, 0, "failed", "reported-failed"),
        (FailureKind.AUTH, 1, "failed", "exit-1"),
    ],
)
def test_a_failure_has_a_structured_reason(kind: FailureKind, exit_code: int | None, status: str, reason: str) -> None:
    """004:81, in the words of the contract."""
    world = SwarmWorld.dispatched(max_attempts=1)
    world.agent("bd-1", failure=Failure(kind=kind, message="it went wrong"), exit_code=exit_code)
    assert (run(world)["status"], run(world)["failure_reason"]) == (status, reason)
    assert run(done())["failure_reason"] is None


def test_a_running_record_has_every_nullable_field() -> None:
    """004:73–82: what is not known yet is null, as the seed's migration leaves it."""
    running = run(SwarmWorld.dispatched())
    assert [name for name, value in running.items() if value is None] == [
        *("finished_at", "duration_seconds", "exit_code", "output_summary", "failure_reason", "template_name"),
    ]
    assert faults_of("run", running) == []


@pytest.mark.parametrize(("kind", "full"), [("run", {**FULL_RUN, "prompt_full": "Task description"}), ("result", FULL_RESULT)])
def test_what_need_not_be_there_may_be_null(kind: str, full: dict[str, Any]) -> None:
    """004:72–82, 135–144, 197: `--fix` adds missing nullable fields."""
    schema = RUN if kind == "run" else RESULT
    nulls = dict.fromkeys(name for name in schema["properties"] if name not in schema["required"])
    assert faults_of(kind, {**full, **nulls}) == []
    for name in schema["required"]:
        assert faults_of(kind, {**full, name: None}) != [], name


def test_the_template_is_recorded() -> None:
    """004:82."""
    assert run(SwarmWorld.dispatched(template="bug-fix"))["template_name"] == "bug-fix"
    assert run(SwarmWorld.dispatched())["template_name"] is None


def test_a_run_record_is_written_as_running_and_once_more_when_it_ends() -> None:
    """004:88, overruled by the contract: what has ended is never rewritten, the newest attempt is."""
    world = SwarmWorld.dispatched()
    world.agent("bd-1", failure=EXIT)
    kept = world.documents()["state/attempts/bd-1.1.run.json"]
    world.timer("bd-1")
    assert world.documents()["state/attempts/bd-1.1.run.json"] == kept
    assert run(world)["status"] == "running"


def test_there_is_one_run_record_per_attempt() -> None:
    """004:89, 171, 173."""
    world = SwarmWorld.dispatched()
    world.agent("bd-1", failure=EXIT)
    world.timer("bd-1")
    world.agent("bd-1")
    kept = [
        document
        for path, document in world.documents().items()
        if path.startswith("state/attempts/") and path.endswith(".run.json")
    ]
    assert [(one["bead"], one["attempt"], one["status"]) for one in kept] == [("bd-1", 1, "failed"), ("bd-1", 2, "done")]


def test_placeholder_timestamps_are_read() -> None:
    """004:90; left out of durations (contract)."""
    merged = merge_records(Record(bead="a", attempt=1, started_at="'$START'"), Record(**{**MINIMAL_RESULT, "bead": "a"}))
    assert merged is not None
    assert (merged.status, merged.duration_s) == ("done", None)
    assert faults_of("run", {**repair_record("run", {**MINIMAL_RUN, "started_at": "'$START'"}, None).document}) == []


def test_run_and_result_agree() -> None:
    """004:131, 134, 169."""
    shared = ("bead", "agent", "status", "attempt", "started_at", "finished_at", "exit_code", "session_name", "max_retries")
    written, ended = run(done()), result(done())
    assert [written[name] for name in shared] == [ended[name] for name in shared]


def test_done_failed_timeout_and_running_mean_what_they_say() -> None:
    """004:148–151; a failed attempt that is tried again says so in will_retry (004:149 overruled by the contract)."""
    assert result(done())["status"] == "done"
    failed = SwarmWorld.dispatched()
    failed.agent("bd-1", failure=EXIT)
    assert (result(failed)["status"], result(failed)["will_retry"]) == ("failed", True)
    failed.timer("bd-1")
    assert run(failed)["status"] == "running"
    failed.agent("bd-1", failure=EXIT)
    assert (result(failed)["status"], result(failed)["will_retry"]) == ("failed", False)
    late = SwarmWorld.dispatched(max_attempts=1, timeout_s=60)
    late.agent("bd-1", failure=TIMEOUT, exit_code=143)
    assert (result(late)["status"], result(late)["exit_code"], run(late)["failure_reason"]) == ("timeout", 124, "timeout-60s")


def test_the_reason_is_the_agents_summary_and_never_empty() -> None:
    """004:137, 157."""
    assert result(done())["reason"] == "did it"
    silent = SwarmWorld.dispatched()
    silent.agent("bd-1")
    assert result(silent)["reason"] == "Completed: do bd-1"


def test_will_retry_says_whether_another_attempt_follows() -> None:
    """004:141, 158."""
    world = SwarmWorld.dispatched(max_attempts=3)
    said = []
    for attempt in (1, 2, 3):
        world.agent("bd-1", failure=EXIT)
        said.append(result(world)["will_retry"])
        if attempt < 3:
            world.timer("bd-1")
    assert said == [True, True, False]


def test_a_failure_that_would_only_happen_again_is_not_retried() -> None:
    """Contract, common: bad flags, agent missing, authentication refused."""
    world = SwarmWorld.dispatched()
    world.agent("bd-1", failure=Failure(kind=FailureKind.AUTH, message="log in first"))
    assert result(world)["will_retry"] is False


def test_a_bead_has_at_most_one_result_and_none_while_it_runs() -> None:
    """004:172; removed when the next attempt starts, so that run and result always agree (contract)."""
    world = SwarmWorld.dispatched()
    world.agent("bd-1", failure=EXIT)
    assert "state/results/bd-1.json" in world.documents()
    world.timer("bd-1")
    assert "state/results/bd-1.json" not in world.documents()


def test_the_schemas_are_published_in_both_forms() -> None:
    """004:14–15, 179–180; the widened form says what was widened (contract, common)."""
    assert sorted(FILES) == ["bead_result.schema.json", "bead_run.schema.json", "result.schema.json", "run.schema.json"]
    assert "widened for reading" in FILES["bead_run.schema.json"]["description"]
