"""Folds a run's journal into its state: the one way a state comes to be, on start, after a crash, and for readers.

A row that begins with `WentBack` makes the rows between it and the one it names history: folding leaves them out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core import finish, takeover
from agent_orchestrator.core.consent import why_refused
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import Effect, RunAgent, RunCheck
from agent_orchestrator.core.events import (
    AgentSpoke,
    AgentsSet,
    DirectiveRefused,
    Event,
    EvidenceWeighed,
    LimitsSet,
    TakenUp,
    ToolRefused,
    TreeKept,
    UnitSteered,
    WentBack,
)
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import (
    DIRECTIVES,
    Abort,
    AgentEnded,
    CheckEnded,
    CheckpointEnded,
    Discard,
    Given,
    HandBack,
    HumanAnswered,
    Land,
    MergeEnded,
    Pause,
    Posted,
    Publish,
    SetAgents,
    SetLimits,
    Speak,
    Steer,
    TakeOver,
)
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.limits import REFUSALS_KEPT
from agent_orchestrator.core.summary import Summary, asking, closing, parked
from agent_orchestrator.core.system import System
from agent_orchestrator.core.who import Who
from agent_orchestrator.engine.shared_facts import APPLIED
from agent_orchestrator.engine.snapshots import restore
from agent_orchestrator.errors import StoreCorrupt
from agent_orchestrator.store.port import Row, Store, StoredRun

encode_events = msgspec.json.Encoder().encode


@cache
def _decoder(event_type: Any) -> Callable[[bytes], list[Event]]:
    return typed.decoder(list[event_type])


def decode_events(system: System, body: bytes) -> list[Event]:
    """The events of one journal row."""
    return _decoder(system.event_type)(body)


class Folded:
    """A run's state with the position in the journal it stands for."""

    __slots__ = ("_past", "at_us", "seq", "since", "state", "system")

    def __init__(self, system: System, state: Any, seq: int, at_us: int, past: Callable[[int], Folded] | None = None) -> None:
        self.system, self.state, self.seq, self.at_us, self.since = system, state, seq, at_us, seq
        """`since` is the row that it was folded from: 0, or that of a snapshot."""
        self._past = past
        """Folds the run anew up to a row, for a run that goes back while it is followed."""

    def apply(self, events: Sequence[Event], at_us: int, look: Callable[[Event], None] | None = None) -> None:
        """Evolves the state by some events that happened at one time; `look` is called after each of the system's moments."""
        evolve, moments, state = self.system.evolve, self.system.moments, self.state
        for event in events:
            kind = type(event)
            if kind in APPLIED:
                APPLIED[kind](state, event)
            evolve(state, event, at_us)
            if look is not None and kind in moments:
                look(event)

    def add(self, seq: int, at_us: int, events: Sequence[Event]) -> None:
        """Takes in the next row of the journal."""
        if events and type(back := events[0]) is WentBack:
            assert self._past is not None, "a run that goes back is folded from its journal"
            self.state = self._past(back.to).state
        self.add_living(seq, at_us, events)

    def add_living(self, seq: int, at_us: int, events: Sequence[Event]) -> None:
        """Takes in the next row that counts: one that went back comes right after the row that it went back to."""
        if self.works(events):
            self.state.doing.worked_us += at_us - self.at_us
        self.apply(events, at_us)
        self.seq, self.at_us = seq, at_us

    def decide(self, what: Given, now_us: int) -> Sequence[Event]:
        """Return what an input means: what concerns all systems alike is decided here, the rest by the system."""
        if isinstance(what, AgentEnded):  # Asked first: it is the commonest, and is none of many others.
            events = self.system.decide(self.state, what, now_us)
            plain = what.kept is None and not what.denials
            return events if plain else [*kept_tree(what), *self._refusals(what), *events]
        if isinstance(what, DIRECTIVES):
            why = why_refused(self.state.doing, what)
            if why is not None:
                return [DirectiveRefused(directive=what.id, why=why, who=what.who)]
            events = self._direct(what, now_us)
            return events if isinstance(what, Speak) else _signed(events, what.who)
        if isinstance(what, MergeEnded) and finish.is_landing(what.effect):
            return [*kept_tree(what), *finish.decide_landed(self.state, what, now_us)]
        events = self.system.decide(self.state, what, now_us)
        if isinstance(what, HumanAnswered):
            return _signed(events, what.who)
        if isinstance(what, CheckEnded) and (what.counted is not None or what.doubts):
            return [*self._weigh(what), *events]
        return [*kept_tree(what), *events]

    def _weigh(self, outcome: CheckEnded) -> Iterator[EvidenceWeighed]:
        effect, tests = self.state.doing.of(unit_of(outcome.effect)), outcome.counted[0] if outcome.counted is not None else None
        if isinstance(effect, RunCheck):
            yield EvidenceWeighed(unit=effect.unit, command=effect.command, tests=tests, doubts=outcome.doubts)

    def _direct(self, directive: Posted, now_us: int) -> Sequence[Event]:
        if isinstance(directive, SetLimits):
            return [LimitsSet(limits=self.state.doing.budget.override(directive.limits))]
        if isinstance(directive, Steer):
            return [self._steer(directive)]
        if isinstance(directive, TakeOver | HandBack):
            return takeover.decide_takeover(self.state, directive)
        if isinstance(directive, Speak):
            return [self._speak(directive)]
        if isinstance(directive, SetAgents):
            return [AgentsSet(agents=directive.agents, changes=directive.changes)]
        if isinstance(directive, Land | Discard | Publish):
            return finish.decide_finish(self.state, directive, now_us)
        if isinstance(directive, Pause | Abort) and (stopped := finish.decide_stop(self.state, directive)):
            return stopped
        return self.system.decide(self.state, directive, now_us)

    def _steer(self, directive: Steer) -> Event:
        """Say what words mean now: they need a prompt to stand in."""
        state, text, unit = self.state, directive.text.strip(), directive.unit or ""
        if not text:
            why = "there is nothing to tell"
        elif state.lifecycle.ended or state.lifecycle.phase is Phase.ABORTING:
            why = f"it is {state.lifecycle.status}: there is no next prompt"
        elif unit and unit not in takeover.known_units(state):
            why = takeover.say_unknown(state, unit)
        else:
            return UnitSteered(text=text, unit=unit, now=directive.now)
        return DirectiveRefused(directive=directive.id, why=why)

    def _speak(self, directive: Speak) -> Event:
        """Say what an agent's words mean now: one whose launch is over speaks to nobody."""
        if not self.state.doing.wants(directive.effect):
            return DirectiveRefused(directive=directive.id, why=f"the launch {directive.effect} is over")
        unit, text = unit_of(directive.effect), directive.text.strip()
        return AgentSpoke(effect=directive.effect, unit=unit, saying=directive.saying, text=text)

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
        for event in events:  # noqa: SIM110 - a fold asks it of each row, and a generator would cost more than the answer
            if type(event) is TakenUp and event.boot != doing.boot:
                return False
        return True


def kept_tree(what: Given) -> Iterator[TreeKept]:
    """The tree that an outcome left, as a fact of its own."""
    if isinstance(what, AgentEnded | CheckpointEnded | MergeEnded) and what.kept is not None:
        yield TreeKept(kept=what.kept, unit=unit_of(what.effect))


def _signed(events: Sequence[Event], who: Who | None) -> Sequence[Event]:
    """The same facts, the first with who said so."""
    return [msgspec.structs.replace(events[0], who=who), *events[1:]] if events and who is not None else events


def summarize(system: System, state: Any) -> Summary:
    """The run in one line, as its system has it, and what is told of every run: parked or not, what it asks, what proves it."""
    return closing(asking(parked(system.summary(state), state.doing), state.doing), state, system.details)


def fold(store: Store, system: System, run: StoredRun, upto: int | None = None) -> Folded:
    """Reads the whole journal of a run, or its rows up to one, and replays it.

    The collector is off meanwhile: a long run makes many objects that all stay, and looking through them again and
    again for rubbish took a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _fold(store, system, run, upto)
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
    spec = typed.decode(store.spec(run.id), system.spec_type)
    past = lambda row: fold(store, system, run, row)  # noqa: E731
    return Folded(system, system.fresh(spec, run.context), 0, run.context.created_us, past)


def living_rows(rows: Sequence[Row], system: System) -> list[Row]:
    """The rows that count for the state: those that the run went back behind are left out."""
    if _BACK not in b"".join([body for _, _, body in rows]):  # Most runs never go back, and one search costs half of many.
        return list(rows)
    turns = {seq: found for seq, _, body in rows if _BACK in body and (found := _turn(system, body))}
    living, place = [], len(rows)
    while place > 0:
        row = rows[place - 1]
        living.append(row)
        place = turns.get(row[0], place - 1)
    return living[::-1]


_BACK = b'"went_back"'


def _turn(system: System, body: bytes) -> int | None:
    first = decode_events(system, body)[0]
    return first.to if isinstance(first, WentBack) else None


def _fold(store: Store, system: System, run: StoredRun, upto: int | None) -> Folded:
    kept = restore(store, system, run) if upto is None else None
    if kept is not None and not any(_BACK in body for _, _, body in kept.rows):  # It may have gone back behind the snapshot.
        folded = Folded(system, kept.state, kept.seq, kept.at_us, lambda row: fold(store, system, run, row))
        return _add_all(folded, run, kept.rows)
    return _add_all(begin_fold(store, system, run), run, living_rows(store.rows(run.id)[:upto], system))


def _add_all(folded: Folded, run: StoredRun, rows: Sequence[Row]) -> Folded:
    decode, seq = _decoder(folded.system.event_type), 0
    try:
        for seq, at_us, body in rows:
            folded.add_living(seq, at_us, decode(body))
    except msgspec.DecodeError as error:
        where = f"row {seq} of run {run.id}: {error}"
        raise StoreCorrupt(path="of this repository", detail=where) from error
    folded.state.doing.take_changes()
    return folded
