"""The rules of 0.1.0, whose events do not say what followed. Never changed: these journals have happened.

Today's rules are in `iterations` and `steps`, and what they decide stands in the events.
"""

from __future__ import annotations

from agent_orchestrator.systems.loop import events as e
from agent_orchestrator.systems.loop.evolve.marks import has_tests
from agent_orchestrator.systems.loop.state import Iteration, LoopState

LOW_DELTA = 5.0


def then_after_saving(state: LoopState) -> str:
    """Say what was due when the tree was kept."""
    if state.current is None:
        return "before" if state.spec.command is not None else "next"
    if state.spec.command is not None:
        return "check"
    return "confirm" if state.current.done else "judge"


def then_after_check(state: LoopState, event: e.CheckFinished) -> str | None:
    """Say what was due after a command; what was due before, where it was the loop's end."""
    if event.again:
        return event.purpose
    if event.purpose == "before":
        return "complete" if event.passed else "next"
    if event.purpose == "check":
        return "judge"
    if event.passed:
        return "tests" if event.purpose == "criterion" and has_tests(state.spec) else "done"
    return state.due


def then_completing(state: LoopState) -> str:
    """Say what a completion was verified with first."""
    return "criterion" if state.spec.command is not None else "tests" if has_tests(state.spec) else "done"


def then_after_iteration(event: e.IterationFinished) -> str:
    """Say what was due after an iteration."""
    return "complete" if event.passed and not event.blocked else "next"


def checkpoint_of(state: LoopState, event: e.IterationFinished) -> str:
    """Say why the iteration's tree was kept as a checkpoint."""
    if event.passed and not event.blocked:
        return "completion"
    return "iteration" if event.iteration % state.spec.checkpoint_interval == 0 else ""


def low_deltas_of(state: LoopState, current: Iteration) -> int:
    """Count the iterations in a row that brought little."""
    low = current.delta is not None and current.delta < LOW_DELTA and not current.passed
    return state.low_deltas + 1 if low else 0
