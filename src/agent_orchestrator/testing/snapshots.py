"""A check for systems that keep snapshots: a state that was kept and restored is the one that it was, and goes on as it would."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.doing import PlannedAgent
from agent_orchestrator.core.events import WentBack
from agent_orchestrator.core.system import System
from agent_orchestrator.engine.journal import Folded, decode_events, fold
from agent_orchestrator.engine.snapshots import pack, unpack_state
from agent_orchestrator.store.port import Store, StoredRun

CUTS = 12
"""The rows of a journal at which a snapshot is tried."""


def check_snapshots(system: System, store: Store, run: StoredRun) -> None:
    """Raises AssertionError where the state of a run is another one with snapshots than without."""
    rows = store.rows(run.id)
    whole = picture(fold(store, system, run, len(rows)).state)
    assert picture(fold(store, system, run).state) == whole, "the snapshot that is kept stands for another state"
    for cut in sorted({1 + (len(rows) - 1) * part // CUTS for part in range(CUTS + 1)}):
        before = fold(store, system, run, cut)
        snapshot = pack(system, run, before.state, before.seq, before.at_us)
        restored = unpack_state(system, run, snapshot.body)
        assert picture(restored) == picture(before.state), f"a state that was kept at row {cut} is restored as another one"
        after = Folded(system, restored, before.seq, before.at_us)
        later = [(seq, at_us, decode_events(system, body)) for seq, at_us, body in rows[cut:]]
        if not any(isinstance(event, WentBack) for _, _, events in later for event in events):
            for row in later:
                after.add_living(*row)
            after.state.doing.take_changes()
            assert picture(after.state) == whole, f"a state that was kept at row {cut} goes on as another one"


def picture(value: Any) -> Any:
    """Return all that is in a state as plain values that can be compared, in order."""
    if isinstance(value, PlannedAgent):
        value = value.build()
    if isinstance(value, Dag):
        # A unit may stand in line twice, or though it is ready no more, until somebody looks.
        return [*value.standing(), sorted({unit for _, unit in value._ready if value._is_ready(unit)}), value._blockers]
    if isinstance(value, msgspec.Struct):
        return [type(value).__name__, *((name, picture(getattr(value, name))) for name in value.__struct_fields__)]
    if isinstance(value, dict):
        return [(key, picture(one)) for key, one in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple | deque):
        return [picture(one) for one in value]
    if hasattr(value, "__slots__") and not isinstance(value, str | int):
        return [(name, picture(getattr(value, name))) for name in value.__slots__]
    return value
