"""The judgement of an iteration: tests counted, errors compared, scores, the best one, checkpoints kept."""

from __future__ import annotations

import gzip
import json

import pytest

from agent_orchestrator.core.effects import RunAgent, RunCheck
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Answer, CheckpointEnded, Instruct, Pause, Resume
from agent_orchestrator.systems.loop.iterations import is_protected, signature_of
from agent_orchestrator.systems.loop.prompts import PROMPT_CHARS_MAX
from tests.scenarios.loop_world import LOOP_RUN, UNIT, LoopWorld
from tests.scenarios.world import failing


def test_an_error_is_the_same_though_times_and_addresses_differ() -> None:
    first = "2025-01-15T14:30:00Z FAILED at 0xdeadbeef in 0.12s (/tmp/a1/x)"
    assert signature_of(first, 1) == signature_of("2026-02-02T21:00:00Z FAILED at 0xbeef in 3.4s (/tmp/b2/y)", 1)
    assert signature_of("Found 12 errors", 1) != signature_of("Found 8 errors", 1)
    assert signature_of("x", 1) != signature_of("x", 2)
    assert signature_of("\n", 1) == ""


def test_a_protected_path_is_a_file_a_folder_or_a_pattern() -> None:
    patterns = ("tests/", "docs/*.md", "Makefile")
    assert all(is_protected(path, patterns) for path in ("tests/a.py", "tests/b/c.py", "docs/x.md", "Makefile"))
    assert not any(is_protected(path, patterns) for path in ("src/tests.py", "docs", "makefile"))


def test_an_iteration_that_deletes_tests_is_not_the_best_one() -> None:
    world = LoopWorld()
    world.begin(tail="1 failed, 9 passed in 0.1s")
    world.iterate(tail="1 failed, 9 passed in 0.1s")
    world.iterate(exit_code=0, tail="1 passed in 0.1s")
    assert [one.score for one in world.state.iterations] == [90.0, 10.0]
    assert world.state.best.number == 1


def test_the_newest_five_checkpoints_stay_and_the_best_one() -> None:
    world = LoopWorld()
    world.begin()
    for number in range(1, 10):
        world.iterate(tail=f"error {number}", report={"quality_score": 90 if number == 2 else 10})
    paths = [document.path for document in world.system.documents(world.state, 0)]
    kept = [int(path[-11:-8]) for path in paths if path.endswith(".gz")]
    assert kept == [2, 5, 6, 7, 8, 9]


def test_a_checkpoint_says_what_was_changed_and_is_the_same_bytes_again() -> None:
    world = LoopWorld(checkpoint_interval=2)
    world.begin()
    world.iterate(tail="a")
    assert world.state.checkpoints == {}
    world.iterate(tail="b", changed="src/a.py", deleted="old.py")
    packed = world.state.checkpoints[2]
    assert world.folded().checkpoints[2] == packed
    document = json.loads(gzip.decompress(packed))
    assert list(document) == ["checkpoint_id", "workflow_id", "loop_id", "created_at", "trigger", "state", "metadata"]
    assert document["state"]["artifacts"] == [
        {"path": "old.py", "hash": "", "status": "deleted"},
        {"path": "src/a.py", "hash": "b10b", "status": "modified"},
    ]
    assert document["loop_id"] == LOOP_RUN
    assert list(document["metadata"]) == ["size_bytes", "compression", "retention_days", "schema_version"]


def test_steering_is_told_again_when_the_launch_was_interrupted() -> None:
    world = LoopWorld()
    world.begin()
    world.tell(Instruct(id="s", what="steer", values={"text": "look left"}))
    world.iterate()
    assert world.prompt.startswith("## First of all\n\nlook left")
    world.tell(Pause(id="p", now=True))
    world.agent(UNIT, failure=failing(FailureKind.STOPPED))
    world.tell(Resume(id="r"))
    assert world.prompt.startswith("## First of all\n\nlook left")
    world.iterate(tail="other")
    assert "look left" not in world.prompt


def test_a_prompt_keeps_to_its_size_and_the_task_stays_whole() -> None:
    task = "do it well. " * 4_000
    world = LoopWorld(task=task)
    world.begin(tail="x" * 2_000)
    world.agent(UNIT, {"summary": "s" * 2_000})
    effect = world.doing(UNIT)
    world.tell(CheckpointEnded(effect=effect.id, commit="c", tree="t", diff="+line\n" * 5_000))
    world.check_end(UNIT, 1, tail="y" * 2_000)
    assert task.rstrip() in world.prompt
    assert "… (cut)" in world.prompt
    assert len(world.prompt) <= PROMPT_CHARS_MAX


def test_agents_and_checks_get_what_is_left_of_the_loops_time() -> None:
    world = LoopWorld(timeout_minutes=1, iteration_timeout_s=90)
    world.saved(tree="start")
    check = world.doing(UNIT)
    assert isinstance(check, RunCheck)
    assert check.timeout_s == 59.0
    world.check_end(UNIT, 1)
    agent = world.doing(UNIT)
    assert isinstance(agent, RunAgent)
    assert agent.timeout_s == 58.0


@pytest.mark.parametrize("kind", [FailureKind.DENIED, FailureKind.UNWRITTEN, FailureKind.EXIT, FailureKind.IDLE])
def test_the_check_decides_after_an_agent_that_gave_up(kind: FailureKind) -> None:
    world = LoopWorld()
    world.begin()
    world.agent(UNIT, failure=failing(kind, "refused"))
    world.saved()
    assert isinstance(world.doing(UNIT), RunCheck)
    world.check_end(UNIT, 0)
    assert (world.state.completing, len(world.state.iterations)) == (True, 1)


def session_of(world: LoopWorld) -> str | None:
    effect = world.doing(UNIT)
    assert isinstance(effect, RunAgent)
    return effect.session


def test_an_interrupted_iteration_goes_on_in_its_session_and_the_next_one_is_fresh() -> None:
    world = LoopWorld()
    world.begin()
    assert session_of(world) is None
    world.tell(Pause(id="p", now=True))
    world.agent(UNIT, failure=failing(FailureKind.STOPPED), session="s1")
    world.tell(Resume(id="r"))
    assert session_of(world) == "s1"
    world.agent(UNIT, failure=failing(FailureKind.SESSION_LOST), session="s1")
    assert session_of(world) is None
    world.agent(UNIT, session="s2")
    world.saved()
    world.check_end(UNIT, 1)
    assert session_of(world) is None


def test_with_continue_session_every_iteration_goes_on_in_the_last_ones() -> None:
    world = LoopWorld(continue_session=True)
    world.begin()
    world.agent(UNIT, session="s1")
    world.saved()
    world.check_end(UNIT, 1)
    assert session_of(world) == "s1"


def reject(world: LoopWorld, comments: str) -> None:
    world.tell(Answer(id=world.directive(), approved=False, comments=comments))


def test_a_weakening_that_a_person_rejects_is_told_to_the_next_iteration() -> None:
    world = LoopWorld(interactive=True)
    world.begin(tail="3 failed in 0.1s")
    world.iterate(exit_code=0, tail="1 passed in 0.1s")
    reject(world, "put the two tests back")
    assert world.state.number == 2
    assert "put the two tests back" in world.prompt


def test_why_a_stuck_loop_was_given_up_is_told_to_its_successor() -> None:
    world = LoopWorld(interactive=True)
    world.begin()
    for _ in range(3):
        world.iterate(tree="start")
    reject(world, "look at the lock file first")
    assert world.state.lifecycle.ended
    successor = LoopWorld(carried=world.state.carry_over())
    successor.begin()
    assert "look at the lock file first" in successor.prompt
    successor.iterate()
    assert "look at the lock file first" not in successor.prompt, "it is told once"
