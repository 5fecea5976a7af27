"""Seed 000, sentence by sentence: the names it promises to library users. The lines are cited in each docstring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.models import RunState, StepRuntime, StepStatus
from agent_orchestrator.state import RunStatePersister
from agent_orchestrator.systems.workflow import state
from agent_orchestrator.systems.workflow.decide.edits import check_state_document
from tests.scenarios.world import run_state_schema
from tests.seeds.test_seed_000_files import STEP_FIELDS, TIMESTAMP, TOP_FIELDS


def a_run(**fields: Any) -> RunState:
    given: dict[str, Any] = {
        "run_id": "abc123",
        "workflow_name": "workflow",
        "repo_dir": Path("/srv/repo"),
        "reports_dir": Path("/srv/repo/.agents/runs/abc123/reports"),
        "manual_inputs_dir": "/srv/repo/.agents/runs/abc123/manual_inputs",
        "steps": {"coding": StepRuntime(), "review": StepRuntime(status=StepStatus.RUNNING, attempts=1)},
    }
    return RunState(**given | fields)


def test_to_dict_has_all_fields_and_a_new_updated_at() -> None:
    """000:447-451: all top-level fields plus a dynamically generated updated_at."""
    run = a_run(created_at="2025-01-15T14:30:00.000000Z")
    document = run.to_dict()
    assert list(document) == TOP_FIELDS
    assert document["created_at"] == "2025-01-15T14:30:00.000000Z"
    assert TIMESTAMP.fullmatch(document["updated_at"])
    assert document["updated_at"] > document["created_at"]
    assert document["repo_dir"] == "/srv/repo"


def test_created_at_defaults_to_now() -> None:
    """000:41."""
    assert TIMESTAMP.fullmatch(a_run().created_at)


def test_what_to_dict_gives_is_valid() -> None:
    """000:447-460."""
    assert check_state_document(a_run().to_dict()) == []
    assert run_state_schema().is_valid(a_run().to_dict())


def test_a_step_runtime_has_defaults_for_all_twelve_fields() -> None:
    """000:53-64."""
    assert list(StepRuntime().to_dict()) == STEP_FIELDS
    assert StepRuntime().to_dict() == msgspec.to_builtins(state.StepDocument())


def test_two_step_runtimes_share_nothing() -> None:
    """000:60-62: each step has its own lists."""
    one, two = StepRuntime(), StepRuntime()
    one.logs.append("x")
    one.metrics["a"] = "b"
    assert (two.logs, two.metrics) == ([], {})


def test_a_step_runtime_prints_enums_paths_and_nulls() -> None:
    """000:453-460: status to its value, paths to strings, null preserved."""
    step = StepRuntime(
        status=StepStatus.WAITING_ON_HUMAN,
        report_path=Path("/r/x.json"),
        manual_input_path=Path("/m/x.json"),
        artifacts=[Path("src/a.py"), "b.py"],
        metrics={"n": 3, "ok": True, "s": "x"},
    )
    document = step.to_dict()
    assert document["status"] == "WAITING_ON_HUMAN"
    assert type(document["status"]) is str
    assert (document["report_path"], document["manual_input_path"]) == ("/r/x.json", "/m/x.json")
    assert document["artifacts"] == ["src/a.py", "b.py"]
    assert document["metrics"] == {"n": "3", "ok": "true", "s": "x"}
    assert document["last_error"] is None


def test_save_writes_utf_8_with_two_spaces(tmp_path: Path) -> None:
    """000:462-468."""
    path = tmp_path / "runs" / "abc123" / "run_state.json"
    RunStatePersister(path).save(a_run(workflow_name="größe"))
    raw = path.read_bytes()
    assert raw.startswith(b'{\n  "run_id": "abc123",\n')
    assert "größe".encode() in raw
    assert raw.endswith(b"}\n")


def test_save_replaces_the_file_whole(tmp_path: Path) -> None:
    """000:469 says "atomic" and "direct file write"; atomic wins: a reader keeps the old file, and nothing is left."""
    path = tmp_path / "run_state.json"
    persister = RunStatePersister(str(path))
    persister.save(a_run(run_id="one"))
    with path.open(encoding="utf-8") as reader:
        persister.save(a_run(run_id="two"))
        assert json.load(reader)["run_id"] == "one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run_state.json"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """000:469."""
    path = tmp_path / "run_state.json"
    persister = RunStatePersister(path)
    persister.save(a_run(run_id="one"))
    with pytest.raises(NotImplementedError):
        persister.save(a_run(steps={"a": StepRuntime(metrics={"x": object()})}))
    assert persister.load() == json.loads(path.read_text("utf-8"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["run_state.json"]


def test_load_gives_back_what_was_saved(tmp_path: Path) -> None:
    """000:475-476."""
    persister = RunStatePersister(tmp_path / "run_state.json")
    run = a_run()
    persister.save(run)
    loaded = persister.load()
    assert loaded is not None
    assert loaded["steps"] == run.to_dict()["steps"]


def test_load_of_a_missing_file_is_none(tmp_path: Path) -> None:
    """000:477."""
    assert RunStatePersister(tmp_path / "nothing.json").load() is None


@pytest.mark.parametrize("text", ["", "{", '{"run_id": "x"', "not json"])
def test_load_raises_on_invalid_json(tmp_path: Path, text: str) -> None:
    """000:478."""
    path = tmp_path / "run_state.json"
    path.write_text(text, "utf-8")
    with pytest.raises(json.JSONDecodeError):
        RunStatePersister(path).load()
