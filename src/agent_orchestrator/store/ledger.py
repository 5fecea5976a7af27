"""The ledger: the spending of all runs' launches, pruned runs included. It only grows.

Sums since a time are remembered: they are asked for with each call of each agent under a budget of the day. How many lines
there are and when the last was written say whether the ledger grew.
"""

from __future__ import annotations

from typing import Any

import apsw

from agent_orchestrator import typed
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.store.port import StoredUsage

_usage = typed.decoder(Usage)


class Ledger:
    """The ledger as one connection reads it."""

    def __init__(self, db: apsw.Connection, sql: dict[str, str]) -> None:
        self._db, self._sql = db, sql
        self._mark: tuple[Any, ...] = ()
        self._sums: tuple[float, int, float] = (0.0, 0, 0.0)

    def since(self, since_us: int) -> tuple[float, int, float]:
        """Return dollars, tokens and seconds; all lines are read again only when there are others than the last time."""
        mark = (since_us, *self._db.execute(self._sql["select_ledger_mark"], (since_us,)).fetchall()[0])
        if mark != self._mark:
            self._sums = self._db.execute(self._sql["select_spent_since"], (since_us,)).fetchall()[0]  # type: ignore[assignment]
            self._mark = mark
        return self._sums

    def lines(self, key: int | None) -> list[StoredUsage]:
        """Return the lines of one run, or of all."""
        name, values = ("select_all_usage", ()) if key is None else ("select_usage", (key,))
        rows: Any = self._db.execute(self._sql[name], values).fetchall()
        return [
            StoredUsage(run=run, unit=unit, effect=effect, agent=agent, at_us=at_us, usage=_usage(body), pruned=bool(pruned))
            for run, unit, effect, agent, at_us, body, pruned in rows
        ]
