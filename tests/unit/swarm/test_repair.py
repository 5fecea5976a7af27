"""Old records are brought up to the full format with what is known, and nothing else."""

from __future__ import annotations

import hashlib
from typing import Any

from agent_orchestrator.runs.swarm.repair import list_placeholders, list_unknown_fields, repair_record
from agent_orchestrator.systems.swarm.faults import faults_of

RUN: dict[str, Any] = {
    "bead": "bd-xyz",
    "agent": "claude",
    "model": "sonnet",
    "repo": "/path/to/repo",
    "started_at": "2026-02-12T17:08:00Z",
    "attempt": 1,
    "prompt": "Task description",
}
RESULT: dict[str, Any] = {"bead": "bd-xyz", "status": "done", "finished_at": "2026-02-12T17:10:00Z", "attempt": 1}


def test_a_minimal_run_takes_status_times_and_exit_code_from_its_result() -> None:
    assert faults_of("run", RUN) != []
    mended = repair_record("run", RUN, {**RESULT, "exit_code": 0}).document
    assert faults_of("run", mended) == []
    assert (mended["status"], mended["finished_at"], mended["duration_seconds"]) == ("done", "2026-02-12T17:10:00Z", 120)
    assert (mended["exit_code"], mended["schema_version"], mended["prompt_full"]) == (0, 1, "Task description")
    assert mended["prompt_hash"] == hashlib.sha256(b"Task description").hexdigest()
    assert {name: mended[name] for name in RUN} == RUN, "what was there is left as it was"


def test_the_result_of_another_attempt_is_not_taken() -> None:
    mended = repair_record("run", RUN, {**RESULT, "attempt": 2}).document
    assert faults_of("run", mended) == []
    assert mended["status"] is None
    assert mended["exit_code"] is None


def test_a_minimal_result_takes_the_agent_from_its_run_and_fails_without_one() -> None:
    assert faults_of("result", repair_record("result", RESULT, RUN).document) == []
    assert faults_of("result", repair_record("result", RESULT, None).document) == ['"agent" is a required property']


def test_nothing_is_invented() -> None:
    mended = repair_record("run", {"bead": "x", "attempt": 1}, None)
    told = {name: value for name, value in mended.document.items() if value is not None}
    assert told == {"bead": "x", "attempt": 1, "schema_version": 1}
    assert faults_of("run", mended.document) != []


def test_nulls_stay_or_get_what_is_known_and_long_prompts_are_cut() -> None:
    nulls = dict.fromkeys(("status", "failure_reason", "exit_code", "prompt_full", "prompt_hash", "schema_version"))
    mended = repair_record("run", {**RUN, "prompt": "p" * 300, **nulls}, None).document
    assert faults_of("run", mended) == []
    assert (len(mended["prompt"]), len(mended["prompt_full"])) == (200, 300)
    assert (mended["status"], mended["exit_code"], mended["failure_reason"]) == (None, None, None)
    assert repair_record("run", {**RUN, **nulls}, RESULT).document["status"] == "done"


def test_placeholders_and_foreign_fields_are_kept_and_named() -> None:
    record = {**RUN, "started_at": "'$START'", "host": "build-7"}
    mended = repair_record("run", record, RESULT).document
    assert (mended["started_at"], mended["host"]) == ("'$START'", "build-7")
    assert faults_of("run", mended) == []
    assert mended["duration_seconds"] is None
    assert list_placeholders(mended) == ["started_at"]
    assert list_unknown_fields("run", mended) == ["host"]
