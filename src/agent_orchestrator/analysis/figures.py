"""Counts outcomes as they come, one at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_orchestrator.analysis.intervals import wilson
from agent_orchestrator.analysis.records import Outcome

REASONS_SHOWN = 10
REASONS_MAX = 1_000
"""Free text of other tools may differ for every bead; beyond this it is counted as one."""
OTHER = "(other)"


class Tally:
    """Some beads together: all, those of an agent, of a model, of a template."""

    __slots__ = ("cost_count", "cost_usd", "done", "duration_count", "duration_s", "failed", "retried", "running", "timeout")

    def __init__(self) -> None:
        self.done = self.failed = self.timeout = self.running = self.retried = 0
        self.duration_s, self.duration_count = 0.0, 0
        self.cost_usd, self.cost_count = 0.0, 0

    @property
    def ended(self) -> int:
        """Those whose newest attempt is over."""
        return self.done + self.failed + self.timeout

    @property
    def total(self) -> int:
        """All of them."""
        return self.ended + self.running

    @property
    def success_rate(self) -> float | None:
        """Of those that ended."""
        return self.done / self.ended if self.ended else None

    @property
    def retry_rate(self) -> float | None:
        """How many needed more than one attempt."""
        return self.retried / self.total if self.total else None

    def add(self, one: Outcome) -> None:
        """Counts one bead."""
        if one.status == "done":
            self.done += 1
        elif one.status == "timeout":
            self.timeout += 1
        elif one.status == "running":
            self.running += 1
        else:
            self.failed += 1
        if one.attempt > 1:
            self.retried += 1
        if one.duration_s is not None:
            self.duration_s += one.duration_s
            self.duration_count += 1
        if one.cost_usd is not None:
            self.cost_usd += one.cost_usd
            self.cost_count += 1

    def facts(self) -> dict[str, Any]:
        """The figures as data; a rate of nothing is not known."""
        low, high = wilson(self.done, self.ended)
        return {
            "total": self.total,
            "success": self.done,
            "failed": self.failed,
            "timeout": self.timeout,
            "running": self.running,
            "success_rate": _rounded(self.success_rate),
            "success_rate_low": _rounded(low),
            "success_rate_high": _rounded(high),
            "retry_rate": _rounded(self.retry_rate),
            "average_duration_seconds": _rounded(self.duration_s / self.duration_count) if self.duration_count else None,
            "cost_usd": _rounded(self.cost_usd) if self.cost_count else None,
            "cost_known_for": self.cost_count,
        }


class Figures:
    """Everything that is counted."""

    def __init__(self) -> None:
        self.all = Tally()
        self.agents: dict[str, Tally] = {}
        self.models: dict[str, Tally] = {}
        self.templates: dict[str, Tally] = {}
        self.reasons: dict[str, int] = {}

    def count(self, outcomes: Iterable[Outcome]) -> Figures:
        """Counts them all."""
        for one in outcomes:
            self.all.add(one)
            for groups, name in ((self.agents, one.agent), (self.models, one.model), (self.templates, one.template)):
                tally = groups.get(name)
                if tally is None:
                    tally = groups[name] = Tally()
                tally.add(one)
            if one.failure_reason is not None:
                reason = one.failure_reason[:200]
                if reason not in self.reasons and len(self.reasons) >= REASONS_MAX:
                    reason = OTHER
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self

    def common_reasons(self) -> list[tuple[str, int]]:
        """The most frequent ones first."""
        return sorted(self.reasons.items(), key=lambda one: (-one[1], one[0]))[:REASONS_SHOWN]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
