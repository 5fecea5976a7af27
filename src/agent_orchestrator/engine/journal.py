"""Folds a run's journal into its state: the one way a state comes to be, on start, after a crash, and for readers."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from agent_orchestrator.core.events import Event, TakenUp
from agent_orchestrator.core.system import System
from agent_orchestrator.errors import StoreCorrupt
from agent_orchestrator.store.port import Store, StoredRun

encode_events = msgspec.json.Encoder().encode


@cache
def _decoder(event_type: Any) -> msgspec.json.Decoder[list[Event]]:
    return msgspec.json.Decoder(list[event_type])


def decode_events(system: System, body: bytes) -> list[Event]:
    """The events of one journal row."""
    return _decoder(system.event_type).decode(body)


class Folded:
    """A run's state with the position in the journal it stands for."""

    __slots__ = ("at_us", "seq", "state", "system")

    def __init__(self, system: System, state: Any, seq: int, at_us: int) -> None:
        self.system, self.state, self.seq, self.at_us = system, state, seq, at_us

    def apply(self, events: Sequence[Event], at_us: int) -> None:
        """Evolves the state by some events that happened at one time."""
        evolve, state = self.system.evolve, self.state
        for event in events:
            if type(event) is TakenUp:
                state.doing.boot = event.boot
            evolve(state, event, at_us)


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


def _fold(store: Store, system: System, run: StoredRun) -> Folded:
    spec = msgspec.json.decode(store.spec(run.id), type=system.spec_type)
    folded = Folded(system, system.fresh(spec, run.context), 0, run.context.created_us)
    decode = _decoder(system.event_type).decode
    try:
        for seq, at_us, body in store.rows(run.id):
            folded.apply(decode(body), at_us)
            folded.seq, folded.at_us = seq, at_us
    except msgspec.DecodeError as error:
        where = f"row {folded.seq + 1} of run {run.id}: {error}"
        raise StoreCorrupt(path="of this repository", detail=where) from error
    folded.state.doing.take_changes()
    return folded
