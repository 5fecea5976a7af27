"""The time to fold a long run's state again."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from agent_orchestrator.engine.journal import fold
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.systems.workflow.events import WorkflowEvent
from agent_orchestrator.systems.workflow.system import WORKFLOW
from benchmarks.measure import Measure, of_rounds
from benchmarks.rig import Rig, chain

ROUNDS = 15


def cold_load(folder: Path) -> Iterator[Measure]:
    """Folding 10,000 steps against reading and typed-decoding their rows with nothing else."""
    rig = Rig(folder / "repo")
    stored = rig.create("long", chain(10_000, rig.prompt))
    rig.drive(stored)
    store = rig.orchestrator.settings.folder
    rig.close()
    ratios = []
    for _ in range(ROUNDS):
        bare_s = _bare(store / "orc.db")
        began = time.perf_counter()
        opened = SqliteStore(store)
        state = fold(opened, WORKFLOW, stored).state
        ours_s = time.perf_counter() - began
        opened.close()
        assert state.lifecycle.ended
        del state
        gc.collect()
        ratios.append(2 * ours_s / (bare_s + _bare(store / "orc.db")))
    yield of_rounds("cold load of 10,000 steps / bare read and typed decode", ratios, 2.5)


def _bare(database: Path) -> float:
    began = time.perf_counter()
    db = apsw.Connection(str(database))
    event_type: Any = list[WorkflowEvent]
    decode = msgspec.json.Decoder(event_type).decode
    rows: Any = db.execute("SELECT seq, at_us, body FROM events ORDER BY run, seq").fetchall()
    decoded = [decode(body) for _, _, body in rows]
    db.close()
    took = time.perf_counter() - began
    assert decoded
    return took
