"""State files of loops in the spellings that are found in the wild, and generated variations of them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_orchestrator.core.events import TakenUp
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.imports import ImportedLoop, import_state
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.system import LOOP
from tests.scenarios.loop_world import loop_state_schema
from tests.unit.variations import example, find_unsaid, vary

NOW_US = from_iso("2027-01-01T00:00:00Z")
BUILD = {
    "task": "Build the runtime",
    "deliverables": ["a", "b"],
    "completion_criteria": ["All code compiles", "All tests pass"],
    "max_iterations": 25,
    "current_iteration": 3,
    "started_at": "2026-01-25T04:00:00Z",
    "status": "completed",
    "iterations": [
        {
            "iteration": 1,
            "started_at": "2026-01-25T04:00:00Z",
            "completed_at": "2026-01-25T04:30:00Z",
            "status": "partial_success",
        },
        {"iteration": 2, "started_at": "2026-01-25T04:30:00Z", "completed_at": "2026-01-25T04:40:00Z", "files_created": 61},
        {"iteration": 3, "completed_at": "2026-01-25T04:52:00Z", "status": "success", "notes": "All criteria now pass."},
    ],
    "final_summary": {"criteria_met": 8},
}
CAMEL = {
    "loopId": "auth-refactor",
    "active": False,
    "task": "Complete issues",
    "completion": "All code changes implemented",
    "maxIterations": 20,
    "currentIteration": 3,
    "startTime": "2026-01-29T23:45:00Z",
    "startTimeMs": 1769730300000,
    "completedTime": "2026-01-30T00:45:00Z",
    "timeoutMinutes": 120,
    "timeoutMs": 7200000,
    "autoCommit": True,
    "branch": None,
    "status": "SUCCESS",
    "iterations": [{"number": 1, "action": "Looked", "result": "found it"}, {"number": 2, "action": "Mended"}],
    "lastResult": "3 tests still failing",
    "learnings": "mend the mocks first",
    "filesModified": ["main.rs"],
}


def evolve(taken: ImportedLoop) -> LoopState:
    context = Context(run=RunId(taken.name), home="/h", workdir="/h", created_us=NOW_US)
    state: LoopState = LOOP.fresh(taken.spec, context)
    for event in (*LOOP.begin(taken.spec, context), *taken.facts):
        LOOP.evolve(state, msgspec.json.decode(msgspec.json.encode(event), type=LOOP.event_type), NOW_US)
    return state


def print_state(taken: ImportedLoop) -> Any:
    """The state.json of the loop."""
    return json.loads(msgspec.json.encode(next(iter(LOOP.documents(evolve(taken), NOW_US))).body))


def said_of(taken: ImportedLoop) -> tuple[str, ...]:
    return (*taken.taken, *taken.notes, *taken.left)


def is_named(path: str, lines: tuple[str, ...]) -> bool:
    return any(line == path or line.startswith(tuple(f"{path}{after}" for after in (" ", ":", ".", "["))) for line in lines)


def inside(value: object) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def test_a_long_history_is_taken_with_its_times() -> None:
    taken = import_state(BUILD, "current-loop.json")
    document = print_state(taken)
    assert (document["status"], document["iteration"], document["completed_at"]) == ("completed", 3, "2026-01-25T04:52:00Z")
    assert document["completion_criteria"] == "All code compiles; All tests pass"
    assert document["metrics"]["total_duration_seconds"] == 52 * 60
    assert document["metrics"]["average_iteration_time_seconds"] == 20 * 60
    assert [(one.iteration, one.passed, one.summary) for one in evolve(taken).tried] == [
        (1, None, ""),
        (2, None, ""),
        (3, True, "All criteria now pass."),
    ]
    assert set(taken.left) == {"deliverables", "iterations[].files_created", "final_summary"}


def test_a_loop_that_ended_has_the_duration_of_its_file_however_long_ago_that_was() -> None:
    without_a_start = {key: value for key, value in CAMEL.items() if key not in ("startTime", "startTimeMs")}
    counted = {**CAMEL, "status": "complete", "completedTime": CAMEL["startTime"], "metrics": {"total_duration_seconds": 330}}
    found = [print_state(import_state(file, "state.json"))["metrics"] for file in (without_a_start, counted)]
    assert [metrics["total_duration_seconds"] for metrics in found] == [0, 330]


def test_camel_case_and_loud_words_are_understood() -> None:
    taken = import_state(CAMEL, "state.json")
    document = print_state(taken)
    assert (document["status"], document["iteration"]) == ("completed", 3)
    assert (document["started_at"], document["completed_at"]) == ("2026-01-29T23:45:00Z", "2026-01-30T00:45:00Z")
    assert document["metrics"]["total_duration_seconds"] == 3600
    assert document["metrics"]["average_iteration_time_seconds"] == 1200
    assert document["configuration"]["max_iterations"] == 20
    assert evolve(taken).learnings == ["mend the mocks first"]
    assert evolve(taken).check_output == "3 tests still failing"
    assert "status: 'SUCCESS' is taken as 'completed'" in taken.notes
    assert set(taken.left) == {"autoCommit", "branch", "filesModified"}


def test_standing_here_does_not_make_a_loop_last_longer() -> None:
    file = {"task": "x", "completion": "y", "status": "running", "iteration": 2, "started_at": "2026-02-02T21:00:00Z"}
    state = evolve(import_state({**file, "last_updated": "2026-02-02T21:10:00Z"}, "state.json"))
    later_us = NOW_US + 90 * US
    LOOP.evolve(state, TakenUp(boot="b", host="here", pid=7, version="0"), later_us)
    document = json.loads(msgspec.json.encode(next(iter(LOOP.documents(state, later_us))).body))
    assert document["metrics"]["total_duration_seconds"] == 600


TRACKED = {
    "id": "ralph-research-issues-2026-01-25",
    "task": "Write an issue for each",
    "completion_criteria": ["All 158 have an issue"],
    "max_iterations": 100,
    "checkpoint_frequency": 5,
    "current_iteration": 3,
    "status": "completed",
    "flow_track": "research",
    "started_at": "2026-01-25T17:00:00Z",
    "completed_at": "2026-01-25T17:45:00Z",
    "metrics": {"issues_created": 158, "issue_range": "#95-#252", "agents_used": 12},
    "labels": {"priority:top-10": 139},
    "learnings": ["Batches help", "The API copes"],
}
PHASED = {
    "task": "Bring the launcher back",
    "completion_criteria": "The app builds, runs and is covered",
    "max_iterations": 50,
    "current_iteration": 5,
    "status": "complete",
    "started_at": "2026-02-19T06:30:00Z",
    "completed_at": "2026-02-19T06:52:00Z",
    "current_phase": "construction",
    "phases": {"research": "complete", "planning": "complete"},
    "gitea_issues_created": [54, 55],
    "verification": {"tests": "514 pass, 0 failures", "bundles_produced": ["a.deb (6.0MB)"]},
    "files_created": ["lib.rs"],
}
BEGUN = {
    "task": "Build the package",
    "completion_criteria": ["The structure is there (src/it/)", "CLI working: it --tier smoke"],
    "max_iterations": 50,
    "current_iteration": 0,
    "status": "running",
    "started_at": "2026-01-24T03:30:00Z",
    "issues_completed": [],
    "test_coverage": 0,
}
"""The shapes of files in public repositories, their words changed."""


@pytest.mark.parametrize(
    ("file", "status", "iteration", "seconds"),
    [(TRACKED, "completed", 3, 45 * 60), (PHASED, "completed", 5, 22 * 60), (BEGUN, "paused", 0, 0)],
)
def test_the_shapes_of_public_files_are_understood(file: dict[str, Any], status: str, iteration: int, seconds: int) -> None:
    taken = import_state(file, "current-loop.json")
    document = print_state(taken)
    assert (document["status"], document["iteration"]) == (status, iteration)
    assert document["metrics"]["total_duration_seconds"] == seconds
    assert document["completed_at"] == file.get("completed_at")
    assert find_unsaid(file, account_of(taken)) == []
    known = {"loop_id", "id", "task", "completion_criteria", "max_iterations", "checkpoint_frequency", "current_iteration"}
    known |= {"status", "started_at", "completed_at", "learnings"}
    assert {re.split(r"[.\[]", line)[0] for line in taken.left} == file.keys() - known - {"metrics"} | {"metrics"} & file.keys()


@pytest.mark.parametrize("word", ["complete", "completed", "SUCCESS", "Done", "success", "finished"])
def test_what_is_done_stays_done_in_all_words(word: str) -> None:
    assert import_state({**BUILD, "status": word}, "x").status == "completed"
    assert import_state({"task": "x", "completed": True, "status": "running"}, "x").status == "completed"
    assert import_state({"task": "x", "iteration": 1, "result": word}, "x").status == "completed"


def test_an_average_and_a_checkpoint_are_those_of_the_file() -> None:
    file = {
        "task": "x",
        "completion": "y",
        "status": "running",
        "iteration": 5,
        "started_at": "2026-02-02T21:00:00Z",
        "metrics": {"total_duration_seconds": 330, "average_iteration_time_seconds": 66},
        "last_checkpoint": ".aiwg/ralph/loops/a/checkpoints/iteration-005.json.gz",
    }
    document = print_state(import_state(file, "state.json"))
    assert (document["metrics"]["total_duration_seconds"], document["metrics"]["average_iteration_time_seconds"]) == (330, 66.0)
    assert document["last_checkpoint"] == file["last_checkpoint"]


NAMES = st.sampled_from(
    [
        *("loop_id", "loopId", "id", "task", "prompt", "completion_criteria", "completion", "completionPromise", "status"),
        *("iteration", "currentIteration", "current_iteration", "maxIterations", "max_iterations", "startTime", "started_at"),
        *("startTimeMs", "completed_at", "completedTime", "endTime", "last_updated", "updatedAt", "owner", "pid", "active"),
        *("completed", "timeoutMinutes", "timeoutMs", "checkpoint_frequency", "configuration", "config", "progress", "metrics"),
        *("iterations", "history", "learnings", "lastResult", "error_context", "error", "checkpoints", "last_checkpoint"),
        *("filesModified", "version", "Max Iterations", "result", "ünïcode", "phases", "interactive", "execution_mode", ""),
    ]
)
WORDS = st.sampled_from(
    [
        *("completed", "complete", "SUCCESS", "IN_PROGRESS", "running", "paused", "failed", "aborted", "crashed", "IDLE", "odd"),
        *(
            "2026-02-02T21:00:00Z",
            "2026-01-30",
            "$START",
            "",
            " ",
            "npm test passes",
            "ralph-fix-a1b2c3d4",
            "7",
            "\udc80",
            "x" * 400,
        ),
    ]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), WORDS, st.text(max_size=8))
ENTRIES = st.dictionaries(
    st.sampled_from(
        [
            *("iteration", "number", "timestamp", "passed", "output", "action", "result", "started_at", "completed_at", "status"),
            *("max_iterations", "timeout_minutes", "total_tokens", "total_cost_usd", "total_duration_seconds", "learnings"),
            *("average_iteration_time_seconds", "total_iterations", "successful_iterations", "error_message", "stack_trace"),
            *(
                "completion_checks",
                "last_completion_check",
                "recovery_attempted",
                "error_timestamp",
                "file",
                "duration_ms",
                "other",
            ),
        ]
    ),
    st.recursive(
        SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=2)), max_leaves=4
    ),
    max_size=6,
)
VALUES = st.one_of(SCALARS, ENTRIES, st.lists(st.one_of(SCALARS, ENTRIES), max_size=4))
FILES = st.one_of(
    st.dictionaries(NAMES, VALUES, max_size=12),
    st.builds(lambda file, more: {**file, **more}, st.sampled_from([BUILD, CAMEL]), st.dictionaries(NAMES, VALUES, max_size=6)),
)
MANY = settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def plain(file: dict[str, Any]) -> dict[str, Any]:
    """The file as JSON has it."""
    read: dict[str, Any] = json.loads(json.dumps(file, ensure_ascii=True).encode().replace(b"\\udc80", b"?"))
    return read


@MANY
@given(FILES)
def test_any_file_is_a_loop_or_refused_and_every_field_is_accounted_for(file: dict[str, Any]) -> None:
    file = plain(file)
    try:
        taken = import_state(file, "state.json")
    except InvalidDocument:
        return
    lines = said_of(taken)
    inner = [f"{key}.{name}" for key in ("metrics", "configuration", "progress", "config") for name in inside(file.get(key))]
    assert [path for path in (*file, *inner) if not is_named(path, lines)] == []
    document = print_state(taken)
    assert [str(error) for error in loop_state_schema().iter_errors(document)] == []


@MANY
@given(FILES)
def test_a_loop_that_is_printed_and_imported_again_is_the_same(file: dict[str, Any]) -> None:
    try:
        taken = import_state(plain(file), "state.json")
    except InvalidDocument:
        return
    first = print_state(taken)
    again = import_state(first, "state.json")
    assert (again.name, again.status) == (taken.name, taken.status)
    second = print_state(again)
    assert second == first


@MANY
@given(FILES, st.sampled_from(["completed", "complete", "SUCCESS", "Done"]))
def test_a_loop_that_is_done_is_never_resumed(file: dict[str, Any], word: str) -> None:
    try:
        taken = import_state({**plain(file), "status": word}, "state.json")
    except InvalidDocument:
        return
    state = evolve(taken)
    assert (state.status, state.lifecycle.ended) == ("completed", True)
    assert print_state(taken)["completed_at"] is not None


@MANY
@given(st.sampled_from([example("loop_state_example.json"), BUILD, CAMEL]).flatmap(vary))
def test_every_field_may_be_odd_and_each_is_accounted_for(file: dict[str, Any]) -> None:
    try:
        taken = import_state(file, "state.json")
    except InvalidDocument:
        return
    assert find_unsaid(file, account_of(taken)) == []
    first = print_state(taken)
    assert print_state(import_state(first, "state.json")) == first


def account_of(taken: ImportedLoop) -> FieldAccount:
    account = FieldAccount()
    account.change_all(taken.notes)
    for line in taken.taken:
        account.take(line)
    for line in taken.left:
        account.leave(line)
    return account
