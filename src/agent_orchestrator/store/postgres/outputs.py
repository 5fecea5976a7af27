"""The outputs of launches in the database: pieces that the host of a run ships, for everybody else to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.errors import Fenced
from agent_orchestrator.store.postgres.connection import Link
from agent_orchestrator.store.postgres.leases import Leases


class OutputPiece(NamedTuple):
    """A part of what a launch wrote to a stream."""

    effect: EffectId
    stream: str
    at: int
    """The place in the file on the run's host at which it begins."""
    size: int
    """Bytes of that file; what is kept of them may be longer or shorter, without secrets."""
    body: bytes


class PostgresOutputs:
    """The outputs of one repository's runs, with a connection of its own that is made when the first one is asked for."""

    def __init__(self, link: Link, sql: dict[str, str], known: Callable[[], int | None], leases: Leases) -> None:
        self._link, self._sql, self._known, self._leases = link, sql, known, leases

    def ship(self, run: RunId, piece: OutputPiece) -> None:
        """Keep a piece of a run that this process drives; raises Fenced, and StoreAway."""
        epoch = self._leases.epoch(run)
        values = (self._known(), run, self._leases.worker, epoch, *piece)
        if not self._link.write(self._sql["ship"], values, tries=1)[0][0]:
            raise Fenced(run=run, expected=epoch, found=0)

    def list_shipped(self, run: RunId) -> dict[tuple[EffectId, str], int]:
        """Return the streams of a run that pieces are kept of, and up to where."""
        rows: Any = self._link.read(self._sql["select_shipped"], (self._known(), run))
        return {(effect, stream): end for effect, stream, end in rows}

    def read(self, run: RunId, effect: EffectId, stream: str, after: int) -> list[tuple[int, bytes]]:
        """Return some pieces of a stream from a place on, each with the place at which it ends."""
        rows: Any = self._link.read(self._sql["select_output"], (self._known(), run, effect, stream, after))
        return list(rows)

    def close(self) -> None:
        """End the connection."""
        self._link.close()
