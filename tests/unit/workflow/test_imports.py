"""State files of workflow runs in the spellings that are found in the wild, and generated variations of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.errors import InvalidDocument, InvalidId
from agent_orchestrator.systems.workflow.imports import ImportedWorkflow, import_state
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World
from tests.unit.variations import example, find_unsaid, vary

NOW_US = from_iso("2027-01-01T00:00:00Z")
CHAIN = yaml.safe_dump({"name": "chain", "steps": [{"id": name, "agent": "a", "prompt": "p.md"} for name in ("a", "b", "c")]})
SPEC = World(CHAIN).spec


def take(document: object) -> ImportedWorkflow:
    return import_state(document, SPEC, "run_state.json", "old1")


def print_out(taken: ImportedWorkflow) -> Any:
    """Give the state file of the run that a file became."""
    created_us = NOW_US if taken.created_us is None else taken.created_us
    context = Context(run=RunId(taken.run), home="/repo", workdir="/repo", created_us=created_us)
    state = WORKFLOW.fresh(SPEC, context)
    for event in (*WORKFLOW.begin(SPEC, context), *taken.facts):
        WORKFLOW.evolve(state, event, NOW_US)
    return msgspec.to_builtins(next(one.body for one in WORKFLOW.documents(state, NOW_US) if one.path.endswith("run_state.json")))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=5,
)
TIMES = st.sampled_from(
    ["2026-01-15T12:00:00Z", "2026-01-15 12:00:00", "2026-01-15T12:00:00.5+01:00", "$START", 1768478400, None]
)
WORDS = st.sampled_from(
    ["COMPLETED", "completed", "success", "Done ✅", "RUNNING", "in-progress", "failed", "SKIPPED", "odd", None, 7]
)
STEP = st.dictionaries(
    st.sampled_from(
        [
            "status",
            "state",
            "attempts",
            "attempt",
            "iterationCount",
            "lastError",
            "artifacts",
            "metrics",
            "logs",
            "endTime",
            "x_step",
        ]
    ),
    JSON | WORDS | TIMES,
    max_size=6,
)
UNITS = st.sampled_from(["a", "b", "c", "gone"])
STEPS = st.dictionaries(UNITS, STEP | WORDS | JSON, max_size=4) | st.lists(
    st.builds(lambda unit, step: {"id": unit, **step}, UNITS, STEP) | UNITS | JSON, max_size=4
)
FILES = st.fixed_dictionaries(
    {"steps": STEPS},
    optional={
        "run_id": st.sampled_from(["old1", "f8c1a491", 7, "../x", None]),
        "workflowName": st.text(max_size=5),
        "createdAt": TIMES,
        "repo_dir": JSON,
        "updated_at": TIMES,
        "status": WORDS,
        "x_top": JSON,
    },
)


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(FILES)
def test_any_file_is_a_run_or_refused_and_every_field_is_accounted_for(file: dict[str, Any]) -> None:
    try:
        taken = take(file)
    except (InvalidDocument, InvalidId):
        return
    lines = taken.account.all
    told = {re.split(r"[.\[: ]", line)[0] for line in lines}
    assert {name for name in file if name != "steps"} <= told, lines
    for unit, step in file["steps"].items() if isinstance(file["steps"], dict) else ():
        for name in step if isinstance(step, dict) and unit != "gone" else ():
            assert any(line.startswith(f"steps.{unit}.{name}") for line in lines), (unit, name, lines)


@settings(deadline=None, max_examples=75, suppress_health_check=list(HealthCheck))
@given(FILES)
def test_a_run_that_is_printed_and_imported_again_is_the_same(file: dict[str, Any]) -> None:
    try:
        first = print_out(take(file))
    except (InvalidDocument, InvalidId):
        return
    assert print_out(take(first)) == first


def rename(file: Any) -> Any:
    """Give an example its steps by the names of the workflow here."""
    return {**file, "steps": dict(zip("abc", file["steps"].values(), strict=False))}


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(range(1, 5)).flatmap(lambda number: vary(rename(example(f"run_state_example_{number}.json")))))
def test_every_field_may_be_odd_and_each_is_accounted_for(file: dict[str, Any]) -> None:
    try:
        taken = take(file)
    except (InvalidDocument, InvalidId):
        return
    assert find_unsaid(file, taken.account, whole=r"(?i)metrics$") == []
    first = print_out(taken)
    assert print_out(take(first)) == first


@pytest.mark.parametrize("word", ["COMPLETED", "completed", "complete", "success", "Done ✅", "passed"])
@pytest.mark.parametrize("listed", [True, False])
def test_what_is_done_stays_done_in_all_words(word: str, listed: bool) -> None:
    steps: Any = [{"stepId": name, "state": word} for name in "abc"] if listed else dict.fromkeys("abc", word)
    taken = take({"runId": "f8c1", "steps": steps})
    assert {step["status"] for step in print_out(taken)["steps"].values()} == {"COMPLETED"}
    assert taken.run == "f8c1"


def test_a_file_that_names_no_run_is_called_after_its_folder() -> None:
    taken = take({"steps": {}})
    assert taken.run == "old1"
    assert "run_id: the file has none; the run is old1, as its folder is called" in taken.account.lines("changed")
