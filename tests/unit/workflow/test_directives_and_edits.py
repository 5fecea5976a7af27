"""Resume with its changes, hand edits, and state files taken over from elsewhere."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml

import agent_orchestrator.systems.workflow as package
from agent_orchestrator.core.events import DirectiveRefused, EditRefused
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Abort, Edited, Pause, Resume
from agent_orchestrator.errors import InvalidDocument, InvalidId, Refused
from agent_orchestrator.systems.workflow.decide.edits import check_state_document
from agent_orchestrator.systems.workflow.events import StateEdited
from agent_orchestrator.systems.workflow.imports import import_state
from agent_orchestrator.systems.workflow.parse import parse
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World, failing, run_state_schema

CHAIN = """\
name: chain
steps:
  - {id: a, agent: coder, prompt: p.md}
  - {id: b, agent: coder, prompt: p.md, needs: [a]}
  - {id: c, agent: coder, prompt: p.md, needs: [b]}
"""


def refusal(events: list[Any]) -> str:
    (event,) = events
    assert isinstance(event, DirectiveRefused)
    return event.why


def resumed(world: World, **changes: Any) -> list[Any]:
    return world.tell(Resume(id=world.directive(), changes=changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_attempts": 0}, "max_attempts is 0"),
        ({"max_iterations": "nan"}, "max_iterations is 'nan'"),
        ({"max_parallel": -1}, "max_parallel is -1"),
        ({"speed": 9}, "does not know the change 'speed'"),
        ({"start_at": "zz"}, "there is no step 'zz'"),
        ({"start_at": "c"}, "step 'a' above it is RUNNING"),
        ({"spec": {"name": "x", "steps": []}}, "the changed workflow has no steps"),
        ({"start_at": "a", "spec": {"steps": []}}, "the changed workflow is not valid"),
        ({}, "the run is running already"),
    ],
)
def test_a_resume_that_makes_no_sense_is_refused_with_a_sentence(changes: dict[str, Any], said: str) -> None:
    world = World(CHAIN)
    assert said in refusal(resumed(world, **changes))
    assert world.statuses() == {"a": "RUNNING", "b": "PENDING", "c": "PENDING"}


def test_only_limits_that_are_given_override() -> None:
    world = World(CHAIN, max_attempts=3, max_iterations=7)
    resumed(world, max_attempts=5)
    assert (world.state.spec.max_attempts, world.state.spec.max_iterations, world.state.spec.max_parallel) == (5, 7, 4)


def test_an_aborting_run_is_not_resumed() -> None:
    world = World(CHAIN)
    world.tell(Abort(id="x"))
    assert "being aborted" in refusal(resumed(world, start_at="a"))


def test_a_finished_run_takes_no_pause_and_no_abort() -> None:
    world = World(CHAIN)
    for step in "abc":
        world.agent(step)
    assert "has ended (completed)" in refusal(world.tell(Pause(id="p")))
    assert "has ended (completed)" in refusal(world.tell(Abort(id="q")))


def test_a_completed_run_is_started_again_at_a_step() -> None:
    world = World(CHAIN)
    for step in "abc":
        world.agent(step, {"artifacts": [f"{step}.py"]})
    resumed(world, start_at="b")
    assert world.statuses() == {"a": "COMPLETED", "b": "RUNNING", "c": "PENDING"}
    assert (world.step("a").artifacts, world.step("b").artifacts) == (["a.py"], [])


def test_start_at_stops_what_runs_below_and_keeps_the_rest_running() -> None:
    text = CHAIN + "  - {id: d, agent: coder, prompt: p.md, needs: [a]}\n"
    world = World(text)
    world.agent("a")
    stopped, kept = world.doing("b").id, world.doing("d").id
    resumed(world, start_at="b")
    assert not world.state.doing.wants(stopped)
    assert world.doing("b").id != stopped
    assert world.doing("d").id == kept


def test_a_step_removed_while_it_runs_is_stopped() -> None:
    world = World(CHAIN)
    world.agent("a")
    shorter = msgspec.to_builtins(parse("name: chain\nsteps: [{id: a, agent: coder, prompt: p.md}]", "w.yaml").spec)
    resumed(world, start_at="a", spec=shorter)
    assert list(world.state.steps) == ["a"]
    assert [effect.unit for effect in world.state.doing] == ["a"]


def test_a_step_that_the_new_file_changes_while_it_runs_begins_again() -> None:
    text = CHAIN + "  - {id: d, agent: coder, prompt: p.md}\n"
    world = World(text)
    stopped = world.doing("d").id
    changed = msgspec.to_builtins(parse(text.replace("{id: d,", "{id: d, needs: [c],"), "w.yaml").spec)
    resumed(world, start_at="a", spec=changed)
    assert not world.state.doing.wants(stopped)
    assert world.statuses() == {"a": "RUNNING", "b": "PENDING", "c": "PENDING", "d": "PENDING"}


def test_resume_forgets_nothing_of_a_failed_runs_healthy_steps() -> None:
    world = World(CHAIN, max_attempts=1)
    world.agent("a", {"artifacts": ["a.py"]})
    world.agent("b", failure=failing(FailureKind.EXIT))
    resumed(world)
    assert world.statuses() == {"a": "COMPLETED", "b": "RUNNING", "c": "PENDING"}
    assert (world.step("b").attempts, world.step("a").artifacts) == (1, ["a.py"])


def edit(world: World, change: Any) -> list[Any]:
    document = world.document()
    change(document)
    return world.tell(Edited(path="run_state.json", document=document))


def paused_world() -> World:
    world = World(CHAIN)
    world.agent("a")
    world.tell(Pause(id="p", now=True))
    world.agent("b", failure=failing(FailureKind.STOPPED))
    return world


def test_an_edit_back_to_pending_runs_the_step_again() -> None:
    world = paused_world()
    edit(world, lambda document: document["steps"]["a"].update(status="PENDING", attempts=0))
    resumed(world)
    # b had begun, so its attempt goes on; a runs beside it, and c waits for b alone.
    assert world.statuses() == {"a": "RUNNING", "b": "RUNNING", "c": "PENDING"}


def test_an_edit_to_failed_blocks_what_depends_on_it() -> None:
    world = paused_world()
    edit(world, lambda document: document["steps"]["b"].update(status="FAILED", last_error="by hand"))
    resumed(world)
    assert WORKFLOW.summary(world.state).status == "failed"
    assert world.statuses() == {"a": "COMPLETED", "b": "FAILED", "c": "PENDING"}


def test_an_edit_to_running_means_to_be_run() -> None:
    world = paused_world()
    edit(world, lambda document: document["steps"]["a"].update(status="RUNNING"))
    assert world.step("a").status == "PENDING"


def test_an_edit_that_changes_nothing_is_nothing() -> None:
    assert edit(paused_world(), lambda document: document.update(extra=1, updated_at="2030-01-01T00:00:00Z")) == []


def test_an_edit_that_names_an_unknown_step_is_refused() -> None:
    world = paused_world()
    (event,) = edit(world, lambda document: document["steps"].update(zz=document["steps"]["a"]))
    assert event.problems == ("steps.zz: there is no such step in this run",)


JUDGED = """
name: judged
steps:
  - {id: checked, agent: x, prompt: p.md, check: "true"}
  - {id: gate, agent: x, prompt: p.md, needs: [checked], loop_back_to: checked}
  - {id: gated, agent: x, prompt: p.md, gates: [open]}
  - {id: person, agent: x, prompt: p.md, human_in_the_loop: true}
  - {id: plain, agent: x, prompt: p.md}
"""


@pytest.mark.parametrize("status", ["COMPLETED", "SKIPPED"])
@pytest.mark.parametrize(
    ("step", "judge"), [("checked", "its check"), ("gate", "its own report"), ("gated", "its gates"), ("person", "orc approve")]
)
def test_an_edit_cannot_pass_what_judges_a_step(step: str, judge: str, status: str) -> None:
    world = World(JUDGED)
    world.tell(Pause(id="p", now=True))
    (event,) = edit(world, lambda document: document["steps"][step].update(status=status))
    assert isinstance(event, EditRefused)
    assert f"steps.{step}.status: an edit cannot make it {status}" in event.problems[0]
    assert judge in event.problems[0]
    (event,) = edit(world, lambda document: document["steps"]["plain"].update(status=status))
    assert isinstance(event, StateEdited)


FAULTS: list[tuple[tuple[str, ...], Any, str]] = [
    (("run_id",), 5, "run_id: must be text"),
    (("created_at",), "yesterday", "created_at: 'yesterday' is not a time"),
    (("created_at",), "2025-13-45T00:00:00Z", "is not a time"),
    (("steps",), [], "steps: must be an object"),
    (("steps", "a"), 1, "steps.a: must be an object"),
    (("steps", "a", "status"), "DONE", "steps.a.status: 'DONE' is not one of PENDING"),
    (("steps", "a", "status"), None, "steps.a.status: None is not one of"),
    (("steps", "a", "attempts"), -1, "steps.a.attempts: must be a whole number"),
    (("steps", "a", "attempts"), True, "steps.a.attempts: must be a whole number"),
    (("steps", "a", "iteration_count"), "2", "steps.a.iteration_count: must be a whole number"),
    (("steps", "a", "artifacts"), "x", "steps.a.artifacts: must be a list of texts"),
    (("steps", "a", "logs"), [1], "steps.a.logs: must be a list of texts"),
    (("steps", "a", "metrics"), {"x": 1}, "steps.a.metrics: must map names to texts"),
    (("steps", "a", "last_error"), 3, "steps.a.last_error: must be text or null"),
    (("steps", "a", "started_at"), "soon", "steps.a.started_at: 'soon' is not a time"),
]


@pytest.mark.parametrize(("path", "value", "said"), FAULTS, ids=lambda value: str(value)[:40])
def test_every_fault_of_a_state_file_is_found_by_us_and_by_the_schema(path: tuple[str, ...], value: Any, said: str) -> None:
    document = World(CHAIN).document()
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (fault,) = check_state_document(document)
    assert said in fault
    # The pattern of the schema cannot know that there is no 13th month.
    assert run_state_schema().is_valid(document) is (value == "2025-13-45T00:00:00Z")


@pytest.mark.parametrize("path", [("run_id",), ("updated_at",), ("steps",), ("steps", "a", "logs"), ("steps", "a", "status")])
def test_a_missing_field_is_found_by_us_and_by_the_schema(path: tuple[str, ...]) -> None:
    document = World(CHAIN).document()
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    assert check_state_document(document) == [f"{'.'.join(path)}: is missing"]
    assert not run_state_schema().is_valid(document)


def test_all_faults_come_at_once() -> None:
    document = World(CHAIN).document()
    document["run_id"] = 1
    document["steps"]["a"]["attempts"] = -1
    document["steps"]["c"]["status"] = "?"
    assert len(check_state_document(document)) == 3


def test_a_state_file_that_is_no_object_is_refused() -> None:
    assert check_state_document([]) == ["the document must be a JSON object"]


def foreign() -> dict[str, Any]:
    world = World(CHAIN)
    world.agent("a", {"artifacts": ["a.py"], "metrics": {"n": 1}})
    return copy.deepcopy(world.document())


def folded_import(document: dict[str, Any], text: str = CHAIN) -> tuple[World, tuple[str, ...]]:
    """The run made of a foreign file, as the engine would fold it."""
    world = World(text)
    imported = import_state(document, world.spec)
    assert imported.run == document["run_id"]
    world.open_journal(*imported.facts)
    world.check()
    return world, (*imported.account.lines("changed"), *imported.account.lines("left"))


def test_a_foreign_run_keeps_what_is_done_and_waits_to_be_resumed() -> None:
    world, notes = folded_import(foreign())
    assert world.statuses() == {"a": "COMPLETED", "b": "PENDING", "c": "PENDING"}
    assert notes[0] == "steps.b: was RUNNING, is PENDING"
    assert WORKFLOW.summary(world.state).status == "paused"
    assert (world.step("a").artifacts, world.step("a").metrics) == (["a.py"], {"n": "1"})
    resumed(world)
    assert world.statuses()["b"] == "RUNNING"


def test_a_foreign_failed_run_goes_on_with_its_failed_steps() -> None:
    document = foreign()
    document["steps"]["b"].update(status="FAILED", last_error="boom", attempts=2)
    world, _ = folded_import(document)
    assert WORKFLOW.summary(world.state).status == "failed"
    resumed(world)
    assert (world.step("b").status, world.step("b").attempts) == ("RUNNING", 1)


def test_a_sloppy_foreign_file_is_taken_over_and_said_so() -> None:
    document = foreign()
    document["created_at"] = "$START"
    document["steps"]["a"] = {"status": "COMPLETED", "metrics": {"n": 1}, "artifacts": None}
    document["steps"]["old"] = document["steps"]["b"]
    document["steps"]["b"] = {"status": "whatever"}
    del document["steps"]["c"]
    world, notes = folded_import(document)
    assert world.statuses() == {"a": "COMPLETED", "b": "PENDING", "c": "PENDING"}
    assert world.step("a").metrics == {"n": "1"}
    said = "\n".join(notes)
    for word in (
        "created_at: '$START'",
        "steps.b.status: 'whatever'",
        "steps.old: the workflow has no such step",
        "steps.c: new",
    ):
        assert word in said


def test_a_foreign_run_in_other_spellings_is_understood() -> None:
    steps = [
        {"id": "a", "state": "success", "startTime": 1736951400, "attempt": "2", "outputs": ["a.py"], "owner": "me"},
        {"id": "b", "status": "Completed ✅", "error": None},
        {"id": "c", "status": "in-progress", "endedAt": "2025-01-15T14:30:00Z"},
    ]
    document = {"id": "old1", "workflow": "chain", "created": "2025-01-15 14:30:00", "steps": steps, "host": "h"}
    imported = import_state(document, World(CHAIN).spec)
    edited = imported.facts[0]
    assert isinstance(edited, StateEdited)
    assert (imported.run, imported.created_us) == ("old1", 1736951400000000)
    assert edited.changes["a"] == {
        "status": "COMPLETED",
        "attempts": 2,
        "started_at": "2025-01-15T14:30:00.000000Z",
        "artifacts": ["a.py"],
    }
    assert edited.changes["b"] == {"status": "COMPLETED"}
    assert "c" not in edited.changes
    assert {"steps[0].owner", "host", "steps[2].endedAt (the step has not ended)"} <= set(imported.account.lines("left"))


@pytest.mark.parametrize(
    ("document", "error"),
    [([], InvalidDocument), ({"run_id": "x"}, InvalidDocument), ({"run_id": "../x", "steps": {}}, InvalidId)],
)
def test_a_foreign_file_without_a_run_in_it_is_refused(document: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        import_state(document, World(CHAIN).spec)


def test_a_foreign_run_needs_its_workflow() -> None:
    with pytest.raises(Refused, match="together with its workflow file"):
        import_state(foreign(), None)


def workflow_schema() -> Any:
    path = Path(package.__file__).parent / "schema" / "workflow.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "examples").rglob("workflow.yaml")), ids=lambda path: path.stem
)
def test_every_example_is_valid_for_us_and_for_editors(path: Path) -> None:
    text = path.read_text("utf-8")
    parsed = parse(text, str(path))
    assert not parsed.warnings
    assert [error.message for error in workflow_schema().iter_errors(yaml.safe_load(text))] == []
    for step in parsed.spec.steps:
        assert (path.parent / step.prompt).is_file(), f"{step.id}: {step.prompt} is missing"


@pytest.mark.parametrize(
    "step",
    [
        {"id": "a/b", "agent": "x", "prompt": "p"},
        {"agent": "x", "prompt": "p"},
        {"id": "a", "agent": "x", "prompt": "p", "need": []},
        {"id": "a", "agent": "x", "prompt": "p", "max_attempts": 0},
        {"id": "a", "agent": "x", "prompt": "p", "loop": {}},
        {"id": "a", "agent": "x", "prompt": "p", "loop": {"items": [], "items_from_step": "b"}},
    ],
)
def test_the_editors_schema_refuses_what_we_refuse(step: dict[str, Any]) -> None:
    assert not workflow_schema().is_valid({"steps": [step]})
