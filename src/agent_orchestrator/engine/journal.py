"""Folds a run's journal into its state: the one way a state comes to be, on start, after a crash, and for readers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from agent_orchestrator.core.consent import why_refused
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import Effect, RunAgent
from agent_orchestrator.core.events import (
    AgentsSet,
    BudgetWarned,
    DirectiveRefused,
    Event,
    HoldEnded,
    LimitsSet,
    TakenUp,
    ToolRefused,
    UnitHeld,
)
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import DIRECTIVES, AgentEnded, Given, HumanAnswered, Posted, SetAgents, SetLimits
from agent_orchestrator.core.limits import REFUSALS_KEPT
from agent_orchestrator.core.summary import Summary, parked
from agent_orchestrator.core.system import System
from agent_orchestrator.core.who import Who
from agent_orchestrator.errors import StoreCorrupt
from agent_orchestrator.store.port import Store, StoredRun

encode_events = msgspec.json.Encoder().encode


@cache
def _decoder(event_type: Any) -> msgspec.json.Decoder[list[Event]]:
    return msgspec.json.Decoder(list[event_type])


def decode_events(system: System, body: bytes) -> list[Event]:
    """The events of one journal row."""
    return _decoder(system.event_type).decode(body)


def _taken_up(state: Any, event: TakenUp) -> None:
    state.doing.boot = event.boot


def _limits_set(state: Any, event: LimitsSet) -> None:
    state.doing.budget = event.limits
    state.doing.warned.clear()


def _agents_set(state: Any, event: AgentsSet) -> None:
    """A launch at work keeps its agent; one that is held has not begun."""
    before = state.spec.assigned
    state.spec = state.spec.with_assigned(event.agents)
    doing: Doing = state.doing
    for unit in doing.holds:
        effect = doing.of(unit)
        assert isinstance(effect, RunAgent), "only agents are held"
        for place, choice in event.agents.items():
            old = before.get(place)
            if old is not None and (old.name, old.options) == (effect.agent.name, effect.agent.options):
                model = choice.model if effect.agent.model == old.model else effect.agent.model
                doing.change_agent(unit, msgspec.structs.replace(choice, model=model))
                break


def _warned(state: Any, event: BudgetWarned) -> None:
    state.doing.warned[event.what] = event.percent


def _held(state: Any, event: UnitHeld) -> None:
    state.doing.hold(event.unit, event.hold)


def _hold_ended(state: Any, event: HoldEnded) -> None:
    state.doing.let_go(event.unit, event.effect)


def _refused(state: Any, event: ToolRefused) -> None:
    state.doing.refused[event.agent, event.tool, event.asked] = event


_SHARED: dict[type, Callable[[Any, Any], None]] = {
    TakenUp: _taken_up,
    LimitsSet: _limits_set,
    AgentsSet: _agents_set,
    BudgetWarned: _warned,
    UnitHeld: _held,
    HoldEnded: _hold_ended,
    ToolRefused: _refused,
}
"""Facts about what all systems have in common: applied here, once, before a system's own `evolve` sees them."""


class Folded:
    """A run's state with the position in the journal it stands for."""

    __slots__ = ("at_us", "seq", "state", "system")

    def __init__(self, system: System, state: Any, seq: int, at_us: int) -> None:
        self.system, self.state, self.seq, self.at_us = system, state, seq, at_us

    def apply(self, events: Sequence[Event], at_us: int) -> None:
        """Evolves the state by some events that happened at one time."""
        evolve, state = self.system.evolve, self.state
        for event in events:
            shared = _SHARED.get(type(event))
            if shared is not None:
                shared(state, event)
            evolve(state, event, at_us)

    def add(self, seq: int, at_us: int, events: Sequence[Event]) -> None:
        """Takes in one row of the journal."""
        if self.works(events):
            self.state.doing.worked_us += at_us - self.at_us
        self.apply(events, at_us)
        self.seq, self.at_us = seq, at_us

    def decide(self, what: Given, now_us: int) -> Sequence[Event]:
        """Return what an input means: what concerns all systems alike is decided here, the rest by the system."""
        if isinstance(what, DIRECTIVES):
            why = why_refused(self.state.doing, what)
            if why is not None:
                return [DirectiveRefused(directive=what.id, why=why, who=what.who)]
            return _signed(self._direct(what, now_us), what.who)
        if isinstance(what, AgentEnded) and what.denials:
            return [*self._refusals(what), *self.system.decide(self.state, what, now_us)]
        events = self.system.decide(self.state, what, now_us)
        return _signed(events, what.who) if isinstance(what, HumanAnswered) else events

    def _direct(self, directive: Posted, now_us: int) -> Sequence[Event]:
        if isinstance(directive, SetLimits):
            return [LimitsSet(limits=self.state.doing.budget.override(directive.limits))]
        if isinstance(directive, SetAgents):
            return [AgentsSet(agents=directive.agents, changes=directive.changes)]
        return self.system.decide(self.state, directive, now_us)

    def _refusals(self, outcome: AgentEnded) -> Iterator[ToolRefused]:
        """The tools that the run has not been refused before."""
        doing: Doing = self.state.doing
        unit = unit_of(outcome.effect)
        effect = doing.of(unit)
        agent = effect.agent.name if isinstance(effect, RunAgent) else ""
        new = [one for one in outcome.denials if (agent, one.tool, one.asked) not in doing.refused]
        for one in new[: max(0, REFUSALS_KEPT - len(doing.refused))]:
            yield ToolRefused(effect=outcome.effect, unit=unit, agent=agent, tool=one.tool, asked=one.asked, allow=one.allow)

    def summary(self) -> Summary:
        """The run in one line."""
        return summarize(self.system, self.state)

    def works(self, events: Sequence[Event]) -> bool:
        """Say whether the time up to these events, which come next, was working time: not if the machine went down meanwhile."""
        doing: Doing = self.state.doing
        if not doing.at_work:
            return False
        return not any(type(event) is TakenUp and event.boot != doing.boot for event in events)


def _signed(events: Sequence[Event], who: Who | None) -> Sequence[Event]:
    """The same facts, the first with who said so."""
    return [msgspec.structs.replace(events[0], who=who), *events[1:]] if events and who is not None else events


def summarize(system: System, state: Any) -> Summary:
    """The run in one line, as its system has it; a run in which everything is parked says so."""
    return parked(system.summary(state), state.doing)


def fold(store: Store, system: System, run: StoredRun) -> Folded:
    """Reads the whole journal of a run and replays it.

    The collector is off meanwhile: a long run makes many objects that all stay, and looking through them again and
    again for rubbish took a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _fold(store, system, run)
    finally:
        if collecting:
            gc.enable()


def effects_of(store: Store, system: System, run: StoredRun, ids: Sequence[EffectId]) -> dict[EffectId, Effect]:
    """Effects that were wanted at some time and are not any more, by id; found by replaying the journal, so seldom asked for."""
    folded = begin_fold(store, system, run)
    found: dict[EffectId, Effect] = {}
    for seq, at_us, body in store.rows(run.id):
        folded.add(seq, at_us, decode_events(system, body))
        doing: Doing = folded.state.doing
        found |= {effect.id: effect for one in ids if (effect := doing.of(unit_of(one))) and effect.id == one}
    return found


def begin_fold(store: Store, system: System, run: StoredRun) -> Folded:
    """The run's state before the first row of its journal."""
    spec = msgspec.json.decode(store.spec(run.id), type=system.spec_type)
    return Folded(system, system.fresh(spec, run.context), 0, run.context.created_us)


def _fold(store: Store, system: System, run: StoredRun) -> Folded:
    folded = begin_fold(store, system, run)
    decode = _decoder(system.event_type).decode
    try:
        for seq, at_us, body in store.rows(run.id):
            folded.add(seq, at_us, decode(body))
    except msgspec.DecodeError as error:
        where = f"row {folded.seq + 1} of run {run.id}: {error}"
        raise StoreCorrupt(path="of this repository", detail=where) from error
    folded.state.doing.take_changes()
    return folded
