"""A workflow file that changed since its run began: what differs, what is taken, and what stays as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Abort, Pause, Resume
from agent_orchestrator.systems.workflow.adoption import compare
from agent_orchestrator.systems.workflow.events import SpecReplaced
from agent_orchestrator.systems.workflow.parse import parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from tests.scenarios.world import World, failing

CHAIN = """\
name: chain
steps:
  - {id: a, agent: coder, prompt: p.md}
  - {id: b, agent: coder, prompt: p.md, needs: [a]}
  - {id: c, agent: coder, prompt: p.md, needs: [b], loop_back_to: b}
"""
OTHER = """\
name: renamed
metadata: {items: [1, [2, 3]]}
steps:
  - {id: a, agent: writer, prompt: p.md}
  - {id: b, agent: coder, prompt: p.md, needs: [a], check: make test, timeout: 5m}
  - {id: docs, agent: coder, prompt: p.md, needs: [b]}
"""
BELOW = """\
name: chain
steps:
  - {id: n, agent: coder, prompt: p.md}
  - {id: a, agent: coder, prompt: p.md, needs: [n]}
  - {id: b, agent: coder, prompt: p.md, needs: [a], loop_back_to: n}
"""


def read(text: str) -> WorkflowSpec:
    return parse(text, "workflow.yaml").spec


def adopt(world: World, text: str) -> list[Any]:
    return world.tell(Resume(id=world.directive(), changes={"spec": msgspec.to_builtins(read(text))}))


def refusal(events: list[Any]) -> str:
    (event,) = events
    assert isinstance(event, DirectiveRefused)
    return event.why


def test_what_differs_is_told_by_the_keys_of_the_file() -> None:
    world = World(CHAIN)
    world.agent("a")
    told = [(one.step, one.keys, one.new, one.removed, one.done, one.begun) for one in compare(world.state, read(OTHER))]
    assert told == [
        ("", ("metadata",), False, False, False, False),
        ("a", ("agent",), False, False, True, False),
        ("b", ("check", "timeout"), False, False, False, True),
        ("docs", (), True, False, False, False),
        ("c", (), False, True, False, False),
    ]
    assert compare(world.state, world.state.spec) == []


def test_pending_steps_take_everything_and_done_ones_keep_definition_and_result() -> None:
    world = World(CHAIN, max_attempts=7)
    world.agent("a", {"artifacts": ["a.py"]})
    stopped = world.doing("b").id
    world.tell(Pause(id="p", now=True))
    replaced = next(event for event in adopt(world, OTHER) if isinstance(event, SpecReplaced))
    assert (replaced.added, replaced.removed, replaced.changed) == (("docs",), ("c",), ("b",))
    assert world.statuses() == {"a": "COMPLETED", "b": "RUNNING", "docs": "PENDING"}
    assert (world.state.specs["a"].agent, world.step("a").artifacts) == ("coder", ["a.py"])
    assert (world.state.specs["b"].check, world.state.specs["b"].timeout_s) == ("make test", 300)
    assert (world.state.spec.name, world.state.spec.max_attempts) == ("chain", 7)
    assert not world.state.doing.wants(stopped)
    assert [one.step for one in compare(world.state, read(OTHER))] == ["a"]
    world.agent("b")
    world.check_end("b")
    world.agent("docs")
    assert world.state.lifecycle.ended


def test_a_done_step_that_the_file_no_longer_has_stays() -> None:
    world = World(CHAIN)
    world.agent("a")
    adopt(world, "name: chain\nsteps:\n  - {id: b, agent: coder, prompt: p.md, check: make test}\n")
    assert world.statuses() == {"a": "COMPLETED", "b": "RUNNING"}


def test_a_failed_step_is_tried_again_as_the_file_has_it_now() -> None:
    world = World(CHAIN, max_attempts=1)
    world.agent("a")
    world.agent("b", failure=failing(FailureKind.EXIT))
    assert world.state.lifecycle.ended
    adopt(world, CHAIN.replace("needs: [a]", "needs: [a], model: better"))
    assert world.statuses() == {"a": "COMPLETED", "b": "RUNNING", "c": "PENDING"}
    effect = world.doing("b")
    assert isinstance(effect, RunAgent)
    assert effect.agent.model == "better"


def test_a_completed_run_goes_on_with_new_steps() -> None:
    world = World(CHAIN)
    for step in "abc":
        world.agent(step)
    assert "has no new steps" in refusal(adopt(world, "description: other\n" + CHAIN))
    adopt(world, CHAIN + "  - {id: d, agent: coder, prompt: p.md, needs: [c]}\n")
    assert world.statuses() == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED", "d": "RUNNING"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHAIN, "no changes that this run can take"),
        (CHAIN.replace("{id: a,", "{id: a, timeout: 1m,"), "no changes that this run can take"),
        (
            BELOW,
            "step 'b': loop_back_to names 'n', which is not above it",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_step(text: str, said: str) -> None:
    world = World(CHAIN)
    world.agent("a")
    before = world.state.spec
    assert said in refusal(adopt(world, text))
    assert world.state.spec == before


def test_an_aborted_run_adopts_nothing() -> None:
    world = World(CHAIN)
    world.tell(Pause(id="p", now=True))
    world.tell(Abort(id="x"))
    for effect in list(world.state.doing):
        world.agent(effect.unit, failure=failing(FailureKind.STOPPED))
    assert "abort" in refusal(adopt(world, OTHER))
