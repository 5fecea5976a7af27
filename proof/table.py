"""The table: what was tried, by kind and system, and what broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from proof.kinds import KINDS
from proof.trial import SYSTEMS, Outcome, read_trial


class Table:
    """The counts of all outcomes so far."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[str, str]] = Counter()
        self.trials: Counter[str] = Counter()
        self.faults: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.tried[outcome.trial.kind, outcome.trial.system] += outcome.tried
        self.trials[outcome.trial.kind] += 1
        if outcome.fault:
            self.faults.append(outcome)

    def take(self, numbers: dict[str, Any]) -> None:
        """Count what an earlier table counted, as `numbers` of the page has it."""
        for one in numbers["tried"]:
            self.tried[one["kind"], one["system"]] += one["tried"]
        self.trials.update(numbers["trials"])
        self.faults += [Outcome(read_trial(one["trial"]), 1, one["fault"]) for one in numbers["violations"]]

    def violations(self, kind: str) -> int:
        """Return how many trials of a kind broke something."""
        return sum(1 for outcome in self.faults if outcome.trial.kind == kind)

    def lines(self) -> list[str]:
        """Return the table as Markdown: a row for each kind, a column for each system, the violations last."""
        columns = [*SYSTEMS, *sorted({system for _, system in self.tried} - set(SYSTEMS))]
        rows = [["fault", *columns, "in all", "violations"]]
        for name, kind in KINDS.items():
            if not self.trials[name]:
                continue
            counts = [self.tried[name, system] for system in columns]
            cells = [f"{count:,}" if count else "–" for count in counts]
            rows.append([f"{name}: {kind.unit}", *cells, f"{sum(counts):,}", str(self.violations(name))])
        return [_row(rows[0]), _row(["---"] * len(rows[0])), *(_row(row) for row in rows[1:])]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
