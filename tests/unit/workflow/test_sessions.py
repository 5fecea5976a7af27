"""An attempt that was stopped goes on in the agent's own session; one that failed begins anew."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Pause, Resume, TimerFired, Usage
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World, failing

PLAIN = "name: test\nsteps:\n  - {id: a, agent: coder, prompt: p.md}\n"
LOOPED = "name: test\nsteps:\n  - {id: a, agent: coder, prompt: p.md, loop: {items: [x, y]}}\n"


def agent_of(world: World) -> RunAgent:
    effect = world.doing("a")
    assert isinstance(effect, RunAgent)
    return effect


def stopped(world: World, session: str | None = "s1") -> None:
    world.tell(Pause(id="p", now=True))
    world.agent("a", failure=failing(FailureKind.STOPPED), session=session)
    world.tell(Resume(id="r"))


def test_a_stopped_attempt_goes_on_in_its_session() -> None:
    world = World(PLAIN)
    assert agent_of(world).session is None
    stopped(world)
    assert (agent_of(world).session, agent_of(world).attempt) == ("s1", 1)
    world.agent("a", session="s1")
    launches = WORKFLOW.details(world.state)["steps"]["a"]["launches"]
    assert [launch["session"] for launch in launches] == ["s1", "s1"]


def test_a_session_that_is_gone_is_replaced_without_counting_an_attempt() -> None:
    world = World(PLAIN)
    stopped(world)
    world.agent("a", failure=failing(FailureKind.SESSION_LOST))
    effect = agent_of(world)
    assert (effect.session, effect.attempt, effect.feedback) == (None, 1, ())
    assert effect.id.endswith("i0.a1.l3.agent")


def test_a_session_cannot_be_lost_twice_in_a_row() -> None:
    world = World(PLAIN)
    stopped(world)
    world.agent("a", failure=failing(FailureKind.SESSION_LOST))
    world.agent("a", failure=failing(FailureKind.SESSION_LOST))
    world.tell(TimerFired(effect=world.doing("a").id))
    assert (agent_of(world).attempt, agent_of(world).session) == (2, None)


@pytest.mark.parametrize("kind", [FailureKind.EXIT, FailureKind.OVERLOADED, FailureKind.TIMEOUT])
def test_a_failed_attempt_is_followed_by_a_fresh_session(kind: FailureKind) -> None:
    world = World(PLAIN)
    world.agent("a", failure=failing(kind), session="s1")
    world.tell(TimerFired(effect=world.doing("a").id))
    assert (agent_of(world).attempt, agent_of(world).session) == (2, None)


def test_consumption_is_among_the_metrics_where_it_is_known() -> None:
    world = World(PLAIN)
    world.agent("a", {"status": "COMPLETED", "metrics": {"n": 1}}, usage=Usage(input_tokens=7, cost_usd=0.25))
    assert world.step("a").metrics == {"input_tokens": "7", "cost_usd": "0.25", "n": "1"}


def test_consumption_is_known_of_a_failed_attempt_too_and_gone_with_the_next() -> None:
    world = World(PLAIN)
    world.agent("a", failure=failing(FailureKind.EXIT), usage=Usage(output_tokens=3))
    assert world.step("a").metrics == {"output_tokens": "3"}
    world.tell(TimerFired(effect=world.doing("a").id))
    assert world.step("a").metrics == {}


def test_a_step_with_items_has_no_consumption_among_its_metrics() -> None:
    world = World(LOOPED)
    for _ in range(2):
        world.agent("a", {"status": "COMPLETED", "metrics": {"n": 1}}, usage=Usage(input_tokens=7))
    assert world.step("a").metrics == {"n": "1"}
