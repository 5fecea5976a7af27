"""The few ways in which a loop's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.systems.loop import events as e
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import WARNINGS_KEPT, LoopState


def begin(state: LoopState) -> None:
    """Something begins: its number is taken, and nothing is due."""
    state.launches += 1
    state.due = None


def has_tests(spec: LoopSpec) -> bool:
    """Whether completing runs tests besides the criterion."""
    return spec.auto_test and spec.test_command is not None and spec.test_command != spec.command


def most(known: int | None, counted: int | None) -> int | None:
    """The highest count so far."""
    return known if counted is None else max(counted, known or 0)


def warn(state: LoopState, warnings: tuple[str, ...]) -> None:
    """Something a person should know."""
    state.warnings = [*state.warnings, *warnings][-WARNINGS_KEPT:]


def stop_pausing(state: LoopState, at_us: int) -> None:
    """Time counts again, unless the loop is still paused or its agent still held."""
    if state.paused_at_us is not None and state.lifecycle.running and not state.doing.holds:
        state.paused_us += at_us - state.paused_at_us
        state.paused_at_us = None


def close_launch(state: LoopState, event: e.AgentFinished | e.CheckFinished) -> None:
    """What became of the newest launch."""
    state.history[-1].close(event)
