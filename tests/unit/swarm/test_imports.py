"""Records of beads in the spellings that are found in the wild, and generated variations of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.values import snake
from agent_orchestrator.runs.swarm.imports import read_records
from agent_orchestrator.systems.swarm.faults import faults_of
from agent_orchestrator.systems.swarm.schema import RESULT, RUN
from tests.unit.variations import find_unsaid, vary

HOME = Path("/workspace")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=5,
)
TIMES = st.sampled_from(["2026-02-12T17:00:00Z", "$START", 1770915600, None])
WORDS = st.sampled_from(["done", "completed", "SUCCESS", "Failed", "timed-out", "running", "odd", None])
KEYS = [*RUN["properties"], "startedAt", "exitCode", "state", "beadId", "x_more"]
RUNS = st.builds(
    lambda fixed, more: {**more, **fixed},
    st.fixed_dictionaries(
        {"bead": st.just("bd-7")}, optional={"prompt": st.just("fix it"), "status": WORDS, "started_at": TIMES}
    ),
    st.dictionaries(st.sampled_from(KEYS), JSON | WORDS | TIMES, max_size=5),
)
RESULTS = st.none() | st.dictionaries(st.sampled_from([*RESULT["properties"], "x_more"]), JSON | WORDS | TIMES, max_size=5)


def take(run: dict[str, Any], result: dict[str, Any] | None) -> tuple[Any, tuple[str, ...]]:
    account = FieldAccount()
    return read_records(HOME, "bd-7", run, result, account), account.all


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(RUNS, RESULTS)
def test_any_records_are_taken_or_refused_and_what_they_become_is_valid_and_stable(run: Any, result: Any) -> None:
    taken, told = take(run, result)
    if taken is None:
        assert told
        return
    first = [msgspec.to_builtins(one) for one in (taken.run, taken.result)]
    assert [faults_of(kind, one) for kind, one in zip(("run", "result"), first, strict=True)] == [[], []]
    again, _ = take(*first)
    second = [msgspec.to_builtins(one) for one in (again.run, again.result)]
    assert second == first
    for name, value in run.items():
        kept = value in (None, "", [], {}) or value in (first[0].get(name), first[0].get(snake(name)))
        assert kept or any(re.search(rf"\b{re.escape(name)}\b", line) for line in told), (name, told)


FULL = {
    "schema_version": 1,
    "bead": "bd-7",
    "agent": "claude",
    "model": "sonnet",
    "repo": "/path/to/repo",
    "prompt": "Task description",
    "prompt_full": "Task description, whole",
    "prompt_hash": "abc123...",
    "started_at": "2026-02-12T17:08:00Z",
    "finished_at": "2026-02-12T17:10:00Z",
    "duration_seconds": 120,
    "status": "done",
    "attempt": 1,
    "max_retries": 2,
    "session_name": "agent-bd-7",
    "result_file": "state/results/bd-7.json",
    "exit_code": 0,
    "template_name": "bug-fix",
    "verification": {"command": "make test", "passed": True},
}
ENDED = {
    **{name: FULL[name] for name in ("schema_version", "bead", "agent", "status", "started_at", "finished_at", "attempt")},
    "reason": "Completed task description",
    "will_retry": False,
    "exit_code": 0,
    "output_summary": "42 passed",
}


@settings(deadline=None, max_examples=75, suppress_health_check=list(HealthCheck))
@given(vary(FULL), vary(ENDED))
def test_every_field_may_be_odd_and_each_is_accounted_for(run: Any, result: Any) -> None:
    account = FieldAccount()
    taken = read_records(HOME, "bd-7", run, result, account)
    if taken is not None:
        whole = "(?i)verification$"
        assert [*find_unsaid(run, account, "run", whole), *find_unsaid(result, account, "result", whole)] == []


@pytest.mark.parametrize("word", ["done", "completed", "success", "Complete ✅", "SUCCEEDED"])
def test_a_bead_that_is_done_stays_done_in_all_words(word: str) -> None:
    run = {"beadId": "bd-7", "task": "fix it", "startTime": 1770915600, "attempts": "2", "durationSeconds": 12.5}
    taken, told = take(run, {"bead": "bd-7", "state": word, "attempt": 2, "exitCode": "0"})
    assert (taken.run.status, taken.run.attempt, taken.run.prompt_full, taken.run.exit_code) == ("done", 2, "fix it", 0), told
    assert (taken.run.started_at, taken.run.duration_seconds) == ("2026-02-12T17:00:00Z", 12)


def test_an_end_that_nobody_wrote_down_is_not_made_up() -> None:
    taken, told = take({"bead": "bd-7", "prompt": "fix it", "status": "done", "started_at": "2026-02-12T17:08:00Z"}, None)
    assert (taken.run.finished_at, taken.result.finished_at, taken.run.duration_seconds) == ("$UNKNOWN", "$UNKNOWN", None)
    assert "run.finished_at: was missing, is '$UNKNOWN'" in told
