"""States of long runs, kept so that they need not be folded from their first row: a cache, never a second truth.

A snapshot counts only for the journal that it was taken of (the run, its creation, the row and the time of that row) and for
the code that made it: as with Python's own compiled files, any other size or time of a source file that says what a state
means, and it is as if there were none. So it is with one that cannot be read. `orc store check` compares all with a fold.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.limits import SNAPSHOT_LIMIT_BYTES
from agent_orchestrator.core.system import System

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.store.port import Row, Store, StoredRun

SNAPSHOT_ROWS = 1_500
"""So many rows at least lie between two: they are folded in some fifteen milliseconds."""
GROWTH = 4
"""A snapshot follows when the journal is a quarter longer: together they cost what five of the whole state do, however long."""
ON_LOOP_BYTES = 16 * 1024 * 1024
"""A state that is larger, encoded, would hold the loop up for too long: it is not taken again."""
NEVER = sys.maxsize

PACKAGE = os.path.dirname(os.path.dirname(__file__))  # No Path: each command that shows a run asks.


def _plain(value: object) -> object:
    if isinstance(value, deque):
        return list(value)
    raise TypeError(f"a state has something that no snapshot can: {value!r}")


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """A state as it is kept, and what it is the state of."""

    meaning: str
    run: RunId
    created_us: int
    seq: int
    at_us: int
    body: bytes
    """The system's own struct, encoded and compressed."""


class Restored(NamedTuple):
    """A state as of a row of its journal, and the rows that follow."""

    state: Any
    seq: int
    at_us: int
    rows: list[Row]


_unpack = typed.unpacker(Snapshot)


@cache
def _unpacker(kind: Any) -> Callable[[bytes], Any]:
    return typed.unpacker(kind)


@cache
def meaning_of(system: str, package: str = PACKAGE) -> str:
    """Return a mark of the code that says what a system's events and states mean: the size and time of each file."""
    engine = [f"{package}/engine/{name}.py" for name in ("journal", "shared_facts", "snapshots")]
    marks = [_mark(file, os.stat(file)) for file in engine]  # Of a Path each, the making would cost more.
    return "\n".join([*marks, *_marks_below(f"{package}/core"), *_marks_below(f"{package}/systems/{system}")])


def _marks_below(folder: str) -> Iterator[str]:
    if not os.path.isdir(folder):  # The system is somebody's own, from elsewhere.
        return
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith(".py"):
            yield _mark(entry.path, entry.stat())
        elif entry.is_dir() and not entry.name.startswith("__"):
            yield from _marks_below(entry.path)


def _mark(path: str, status: os.stat_result) -> str:
    return f"{os.path.basename(path)} {status.st_size} {status.st_mtime_ns}"  # Where it lies says nothing.


def pack(system: System, run: StoredRun, state: Any, seq: int, at_us: int) -> Snapshot:
    """Return the snapshot of a state as of a row of its journal, not yet compressed. OverflowError for a huge number."""
    body = _encode(_take(system, state))
    return Snapshot(meaning_of(system.name), run.id, run.context.created_us, seq, at_us, body)


def _take(system: System, state: Any) -> Any:
    assert system.snapshots is not None
    list(state.doing)  # Whatever is only planned becomes an effect.
    return system.snapshots.take(state)


def unpack_state(system: System, run: StoredRun, body: bytes) -> Any:
    """Return the state that a snapshot was taken of."""
    assert system.snapshots is not None
    return system.snapshots.restore(_unpacker(system.snapshots.kind)(body), run.context)


def same_states(system: System, one: Any, other: Any) -> bool:
    """Say whether two states are the same in all that a snapshot has: as they would be restored, for there a tuple is a list."""
    assert system.snapshots is not None
    unpack = _unpacker(system.snapshots.kind)
    return bool(unpack(_encode(_take(system, one))) == unpack(_encode(_take(system, other))))


def encode(snapshot: Snapshot) -> bytes:
    """Return a snapshot as it is stored: compressed, for the states of steps are much alike."""
    return _encode(msgspec.structs.replace(snapshot, body=zlib.compress(snapshot.body, 1)))


def restore(store: Store, system: System, run: StoredRun) -> Restored | None:
    """Return the state of a run's newest snapshot and the rows after it; None where there is none, at any doubt."""
    if system.snapshots is None or store.snapshots is None or (content := store.snapshots.read(run.id)) is None:
        return None
    try:
        kept = _unpack(content)
        known = (kept.meaning, kept.run, kept.created_us)
        if known != (meaning_of(system.name), run.id, run.context.created_us):
            return None
        first, *rows = store.rows(run.id, kept.seq - 1) or [(0, 0, b"")]
        if first[:2] != (kept.seq, kept.at_us):
            return None
        state = unpack_state(system, run, zlib.decompressobj().decompress(kept.body, SNAPSHOT_LIMIT_BYTES))
    except (msgspec.DecodeError, zlib.error, OSError, ValueError, KeyError):
        return None
    return Restored(state, kept.seq, kept.at_us, rows)


class SnapshotKeeper:
    """Takes snapshots of one run while it is driven."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._store = driver, driver.engine.store.snapshots
        keeps = self._store is not None and driver.system.snapshots is not None
        self.due = self._after(driver.folded.since) if keeps else NEVER
        """The row of the journal at which the next one is taken."""

    def _after(self, last: int) -> int:
        return last + max(self._driver.engine.world.snapshot_rows, last // GROWTH)

    def take(self) -> None:
        """Keep the state as it is now, which is durable. What goes wrong is nobody's loss: the next one is taken later."""
        driver, store, seq = self._driver, self._store, self._driver.seq
        self.due = self._after(seq)
        try:
            snapshot = pack(driver.system, driver.run, driver.state, seq, driver.folded.at_us)
        except (OverflowError, OSError):  # A number of an agent's that fits into JSON alone; no sources to know the code by.
            self.due = NEVER
            return
        if len(snapshot.body) > ON_LOOP_BYTES:
            self.due = NEVER

        def write() -> None:
            try:
                assert store is not None
                store.write(driver.run.id, encode(snapshot))
            except OSError:
                pass

        driver.engine.offload(len(snapshot.body), write, lambda done: None)
