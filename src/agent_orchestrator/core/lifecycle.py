"""Pause, resume, abort and end: the same for every system, so that none can get it wrong in its own way.

     running ──Paused──▶ paused ──Resumed──▶ running
        │                  │
        └────Aborted───────┴──▶ aborting ──Ended──▶ ended ──Resumed──▶ running (if the system allows it)

A pause drains: `advance` stays silent and what runs may finish. `halting` (pause --now, abort) also makes the engine
stop what runs; an agent that finished before the signal reached it still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.events import (
    Aborted,
    CommonEvent,
    DirectiveRefused,
    Ended,
    Paused,
    Resumed,
    StopReason,
)
from agent_orchestrator.core.inputs import Abort, Directive, Pause

Facts = dict[type, Callable[[Any, Any, int], None]]
"""The function of each event that changes a system's state: state, event, time."""


def apply_event(facts: Facts, state: Any, event: Any, at_us: int) -> None:
    """Apply an event that happened at `at_us`; one that has no function is common, and the lifecycle's or nobody's."""
    state.updated_us = at_us
    apply = facts.get(type(event))
    if apply is not None:
        apply(state, event, at_us)
    else:
        state.lifecycle.evolve(event)


def refuse(directive: Directive, why: str) -> list[Any]:
    """Take the directive from the inbox, change nothing, and say why."""
    return [DirectiveRefused(directive=directive.id, why=why)]


Decisions = dict[type, Callable[[Any, Any, int], Sequence[Any]]]
"""The function that says what follows each input of a system: state, input, now."""


def decide_input(decisions: Decisions, state: Any, what: Any, now_us: int) -> Sequence[Any]:
    """Give the events that follow an input; a pause and an abort are the lifecycle's, unless the system has its own way."""
    decide = decisions.get(type(what))
    if decide is not None:
        return decide(state, what, now_us)
    assert isinstance(what, Pause | Abort), f"this run asks for nothing that ends so: {what}"
    life: Lifecycle = state.lifecycle
    return life.decide(what)


class Phase(StrEnum):
    """The phase of a run's life."""

    RUNNING = "running"
    PAUSED = "paused"
    ABORTING = "aborting"
    ENDED = "ended"


class Lifecycle(msgspec.Struct):
    """The part of a run's state that pause, resume, abort and end change."""

    phase: Phase = Phase.RUNNING
    running: bool = True
    """True while `advance` may start something."""
    ended: bool = False
    """True when the run is over."""
    halting: bool = False
    stop: StopReason | None = None
    detail: str = ""

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.running, self.ended = phase is Phase.RUNNING, phase is Phase.ENDED

    @property
    def status(self) -> str:
        """The phase, or the reason why a run that is over ended."""
        return (self.stop or StopReason.FAILED).value if self.ended else self.phase.value

    def details(self) -> dict[str, Any]:
        """Give what commands show of it."""
        return {"phase": self.phase.value, "stop": self.stop.value if self.stop is not None else None, "detail": self.detail}

    def evolve(self, event: CommonEvent) -> None:
        """Applies a fact; events that concern no lifecycle are ignored."""
        match event:
            case Paused():
                self._enter(Phase.PAUSED)
                self.halting, self.stop, self.detail = event.now, event.stop, event.reason
            case Resumed():
                self._enter(Phase.RUNNING)
                self.halting, self.stop, self.detail = False, None, ""
            case Aborted():
                self._enter(Phase.ABORTING)
                self.halting, self.detail = True, event.reason
            case Ended():
                self._enter(Phase.ENDED)
                self.halting, self.stop, self.detail = False, event.stop, event.detail
            case _:
                pass

    def decide(self, directive: Pause | Abort) -> list[CommonEvent]:
        """Say what a pause or an abort means now."""
        if self.ended:
            return refuse(directive, f"the run has ended ({self.stop})")
        if self.phase is Phase.ABORTING:
            return refuse(directive, "the run is being aborted")
        if isinstance(directive, Abort):
            return [Aborted(reason=directive.reason)]
        if self.phase is Phase.PAUSED and self.halting >= directive.now:
            return refuse(directive, "the run is paused already")
        return [Paused(reason=directive.reason, now=directive.now)]
