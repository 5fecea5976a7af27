"""What all runs spent since a time, remembered: it is asked for with each call of each agent under a budget of the day.

The ledger only grows, but for runs that are pruned; how many lines it has and when the last was written say whether it did.
"""

from __future__ import annotations

from typing import Any

import apsw


class Spending:
    """The sums of one connection."""

    def __init__(self, db: apsw.Connection, sql: dict[str, str]) -> None:
        self._db, self._sql = db, sql
        self._mark: tuple[Any, ...] = ()
        self._sums: tuple[float, int, float] = (0.0, 0, 0.0)

    def since(self, since_us: int) -> tuple[float, int, float]:
        """Dollars, tokens and seconds; all lines are read again only when there are others than the last time."""
        mark = (since_us, *self._db.execute(self._sql["select_ledger_mark"], (since_us,)).fetchall()[0])
        if mark != self._mark:
            self._sums = self._db.execute(self._sql["select_spent_since"], (since_us,)).fetchall()[0]  # type: ignore[assignment]
            self._mark = mark
        return self._sums
