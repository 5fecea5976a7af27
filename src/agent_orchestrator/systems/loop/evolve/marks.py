"""The few ways in which a loop's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import LoopState


def begin(state: LoopState) -> None:
    """Take a number for what begins; nothing is due."""
    state.record.launches += 1
    state.due = None


def begin_program(state: LoopState, effect: EffectId, at_us: int) -> None:
    """Keep the launch of a program that begins; nothing is due, and whoever drives the loop has started it."""
    state.record.open_launch(effect, at_us)
    state.due, state.orphaned = None, False


def has_tests(spec: LoopSpec) -> bool:
    """Tell whether completing runs tests besides the criterion."""
    return spec.auto_test and spec.test_command is not None and spec.test_command != spec.command


def most(known: int | None, counted: int | None) -> int | None:
    """The highest count so far."""
    return known if counted is None else max(counted, known or 0)


def stop_pausing(state: LoopState, at_us: int) -> None:
    """Time counts again, unless the loop is still paused or its agent still held."""
    if state.paused_at_us is not None and state.lifecycle.running and not state.doing.holds:
        state.paused_us += at_us - state.paused_at_us
        state.paused_at_us = None
