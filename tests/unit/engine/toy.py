"""The smallest system there is: it wants the effects it was given, each until its outcome, and ends when all have one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import Effect
from agent_orchestrator.core.events import Aborted, CommonEvent, DirectiveRefused, Ended, Event, Paused, Resumed, StopReason
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.inputs import OUTCOMES, Abort, Answer, Edited, Input, Instruct, Outcome, Pause, Resume
from agent_orchestrator.core.lifecycle import Lifecycle, Phase
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, Document, System

PATH = "toy.json"


class ToySpec(msgspec.Struct, frozen=True):
    """A specification: the effects that are wanted from the beginning."""

    effects: tuple[Effect, ...]


class Began(Event, frozen=True, kw_only=True, tag="began"):
    """The run exists."""


class Wanted(Event, frozen=True, kw_only=True, tag="wanted"):
    """The next effect is to be done."""

    effect: Effect


class Did(Event, frozen=True, kw_only=True, tag="did"):
    """One effect is over."""

    outcome: Outcome


ToyEvent = CommonEvent | Began | Wanted | Did


class ToyState:
    """A state: the effects that are wanted, and their outcomes."""

    def __init__(self, spec: ToySpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.doing, self.lifecycle = Doing(), Lifecycle()
        self.wanted = 0
        self.outcomes: dict[str, Outcome] = {}


def as_system(toy: Any) -> System:
    """The toy, or what behaves like it, as a value."""
    said: dict[str, Any] = {name: getattr(toy, name) for name in System.__struct_fields__ if hasattr(toy, name)}
    return System(**said)


class ToySystem:
    """See the module."""

    name = "toy"
    spec_type: type[Any] = ToySpec
    event_type: Any = ToyEvent
    forms: Forms = MappingProxyType({})

    def __init__(self) -> None:
        self.on_print: Callable[[], None] = lambda: None
        self.moments: dict[type[Event], bool] = {}
        self.padding = 0
        self.records: list[Document] = []
        self.shows_wanted = False

    def fresh(self, spec: ToySpec, context: Context) -> ToyState:
        return ToyState(spec, context)

    def begin(self, spec: ToySpec, context: Context) -> Sequence[Event]:
        return [Began()]

    def decide(self, state: ToyState, what: Input, now_us: int) -> Sequence[Event]:
        match what:
            case Pause() | Abort():
                return state.lifecycle.decide(what)
            case Resume():
                running = state.lifecycle.running or state.lifecycle.ended
                return [DirectiveRefused(directive=what.id, why="it is not paused")] if running else [Resumed()]
            case Answer() | Instruct():
                return [DirectiveRefused(directive=what.id, why="nobody asked")]
            case Edited():
                return []
            case _:
                assert isinstance(what, OUTCOMES)
                return [Did(outcome=what)]

    def advance(self, state: ToyState, now_us: int) -> Sequence[Event]:
        if state.lifecycle.running and state.wanted < len(state.spec.effects):
            return [Wanted(effect=effect) for effect in state.spec.effects[state.wanted :]]
        if state.lifecycle.running and not len(state.doing):
            return [Ended(stop=StopReason.COMPLETED)]
        if state.lifecycle.phase is Phase.ABORTING and not state.doing.active:
            return [Ended(stop=StopReason.ABORTED, detail=state.lifecycle.detail)]
        return ()

    def files(self, spec: ToySpec, run: str) -> tuple[str, ...]:
        return (PATH,)

    def evolve(self, state: ToyState, event: Any, at_us: int) -> None:
        match event:
            case Wanted():
                state.wanted += 1
                state.doing.put(event.effect)
            case Did():
                unit = event.outcome.effect.split("/")[1]
                state.outcomes[unit] = event.outcome
                state.doing.drop(unit)
            case Paused() | Resumed() | Aborted():
                state.lifecycle.evolve(event)
            case Ended():
                state.lifecycle.evolve(event)
                for effect in list(state.doing):
                    state.doing.drop(effect.unit)

    def documents(self, state: ToyState, now_us: int) -> list[Document]:
        self.on_print()
        body: dict[str, Any] = {"phase": state.lifecycle.phase.value, "done": list(state.outcomes)}
        if self.padding:
            body["padding"] = "x" * self.padding
        if self.shows_wanted:
            body["wanted"] = state.wanted
        return [Document(path=PATH, body=body), *self.records]

    def summary(self, state: ToyState) -> Summary:
        life = state.lifecycle
        status = life.stop.value if life.ended and life.stop is not None else life.phase.value
        return Summary(status=status, stop=life.stop, done=len(state.outcomes), total=len(state.spec.effects))

    def details(self, state: ToyState) -> dict[str, Any]:
        return {}

    def faults(self, path: str, document: Any) -> list[str]:
        return [] if isinstance(document, dict) and "phase" in document else ["phase: is missing"]
