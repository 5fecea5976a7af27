"""Says which step of a loop follows another; `decide` and `advance` put it into their events, `evolve` only follows it."""

from __future__ import annotations

from agent_orchestrator.core.judging import Worth
from agent_orchestrator.systems.loop.evolve.marks import has_tests
from agent_orchestrator.systems.loop.state import LoopState


def after_saving(state: LoopState) -> str:
    """Say what follows when the tree is kept, or cannot be."""
    if state.current is None:
        return "before" if state.spec.command is not None else "next"
    if state.spec.command is not None:
        return "check"
    return "confirm" if state.current.done else "judge"


def after_check(state: LoopState, purpose: str, worth: Worth) -> str | None:
    """Say what follows a command; nothing where it ends the loop or was stopped."""
    if worth is Worth.AGAIN:
        return purpose
    if worth is Worth.STOPPED:
        return None
    passed = worth is Worth.PASSED
    if purpose == "before":
        return "complete" if passed else "next"
    if purpose == "check":
        return "judge"
    if not passed:
        return None
    return "tests" if purpose == "criterion" and has_tests(state.spec) else "done"


def first_verification(state: LoopState) -> str:
    """Say what a loop that seems to be complete is verified with first."""
    if state.spec.command is not None:
        return "criterion"
    return "tests" if has_tests(state.spec) else "done"
