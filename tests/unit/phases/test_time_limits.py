"""The time limit of an attempt is its own, in however many launches it runs."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import TimerFired
from tests.scenarios.phases_world import PhasesWorld

SMALL = Path(__file__).parents[2] / "scenarios" / "documents" / "small.md"


def left_s(world: PhasesWorld) -> float | None:
    """Return the time that the agent at work may run."""
    effect = world.doing("1.1")
    assert isinstance(effect, RunAgent)
    return effect.timeout_s


def test_a_launch_that_continues_an_attempt_has_what_is_left_of_its_time() -> None:
    world = PhasesWorld(SMALL.read_text("utf-8"), yes=True, timeout_s=60.0)
    world.saved("plan")
    world.agent("1.1", failure=Failure(kind=FailureKind.RATE_LIMITED, message="later"))
    world.agent("1.1", failure=Failure(kind=FailureKind.RATE_LIMITED, message="later"))
    assert left_s(world) == 58.0
    world.agent("1.1", failure=Failure(kind=FailureKind.EXIT, message="exited with code 1"))
    world.tell(TimerFired(effect=world.doing("1.1").id))
    assert left_s(world) == 60.0, "another attempt"
    world.agent("1.1", failure=Failure(kind=FailureKind.STOPPED, message="stopped"))
    assert left_s(world) == 59.0
    world.agent("1.1", {"status": "PASS"})
    assert left_s(world) == 60.0, "another agent"
