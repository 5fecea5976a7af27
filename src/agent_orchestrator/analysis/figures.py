"""The figures of outcomes, counted one at a time in memory that does not grow with them, and the advice that they suggest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from agent_orchestrator.analysis.records import Outcome

REASONS_SHOWN = 10
REASONS_MAX = 1_000
"""Free text of other tools may differ for every bead; beyond this it is counted as one."""
OTHER = "(other)"

Name = TypeVar("Name", str, tuple[str, str, str])

Z_95 = 1.959963984540054

SUCCESS_MIN, SUCCESS_RUNS_MIN = 0.70, 3
RETRIES_MAX, RETRY_RUNS_MIN = 0.30, 3
AGENT_MIN, AGENT_RUNS_MIN = 0.60, 2
TEMPLATE_MIN, TEMPLATE_RUNS_MIN = 0.50, 2


class Tally:
    """Some beads together: all, those of an agent, of a model, of a template."""

    __slots__ = ("cost_count", "cost_usd", "done", "duration_count", "duration_s", "failed", "retried", "running", "timeout")

    def __init__(self) -> None:
        self.done = self.failed = self.timeout = self.running = self.retried = 0
        self.duration_s, self.duration_count = 0.0, 0
        self.cost_usd, self.cost_count = 0.0, 0

    @property
    def ended(self) -> int:
        """The beads whose newest attempt is over."""
        return self.done + self.failed + self.timeout

    @property
    def total(self) -> int:
        """The number of beads."""
        return self.ended + self.running

    @property
    def success_rate(self) -> float | None:
        """The share of ended beads that succeeded."""
        return self.done / self.ended if self.ended else None

    @property
    def retry_rate(self) -> float | None:
        """The share of beads that needed more than one attempt."""
        return self.retried / self.total if self.total else None

    def add(self, one: Outcome) -> None:
        """Count one bead."""
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
        """Return the figures as data; a rate of nothing is None."""
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
    """The counts of all beads together, by agent, model and template, and by each combination of the three."""

    def __init__(self) -> None:
        self.all = Tally()
        self.agents: dict[str, Tally] = {}
        self.models: dict[str, Tally] = {}
        self.templates: dict[str, Tally] = {}
        self.combinations: dict[tuple[str, str, str], Tally] = {}
        self.reasons: dict[str, int] = {}

    def count(self, outcomes: Iterable[Outcome], since_s: float | None = None) -> Figures:
        """Count them all, or those that began at a time or later."""
        for one in outcomes:
            if since_s is not None and (one.started_s is None or one.started_s < since_s):
                continue
            self.all.add(one)
            _tally(self.agents, one.agent).add(one)
            _tally(self.models, one.model).add(one)
            _tally(self.templates, one.template).add(one)
            _tally(self.combinations, (one.agent, one.model, one.template)).add(one)
            if one.failure_reason is not None:
                reason = one.failure_reason[:200]
                if reason not in self.reasons and len(self.reasons) >= REASONS_MAX:
                    reason = OTHER
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self

    def facts(self) -> dict[str, Any]:
        """Return all figures as data."""
        every = self.all.facts()
        return {
            "total_runs": every.pop("total"),
            **every,
            "by_agent": {name: tally.facts() for name, tally in sorted(self.agents.items())},
            "by_model": {name: tally.facts() for name, tally in sorted(self.models.items())},
            "by_template": {name: tally.facts() for name, tally in sorted(self.templates.items())},
            "by_agent_model_template": [
                {"agent": agent, "model": model, "template": template, **tally.facts()}
                for (agent, model, template), tally in sorted(self.combinations.items())
            ],
            "failure_reasons": dict(self.common_reasons()),
        }

    def common_reasons(self) -> list[tuple[str, int]]:
        """Return the reasons of failure, the most frequent first."""
        return sorted(self.reasons.items(), key=lambda one: (-one[1], one[0]))[:REASONS_SHOWN]


def _tally(groups: dict[Name, Tally], name: Name) -> Tally:
    tally = groups.get(name)
    if tally is None:
        tally = groups[name] = Tally()
    return tally


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def recommend(figures: Figures) -> list[str]:
    """Return a sentence for each threshold that is passed; none when all is well."""
    said = []
    every, rate = figures.all, figures.all.success_rate
    if rate is not None and every.ended >= SUCCESS_RUNS_MIN and rate < SUCCESS_MIN:
        common = figures.common_reasons()
        most = f" Begin with the most common failure: {common[0][0]} ({common[0][1]}x)." if common else ""
        said.append(f"Only {rate:.0%} of the beads succeed, less than {SUCCESS_MIN:.0%}.{most}")
    retries = every.retry_rate
    if retries is not None and every.total >= RETRY_RUNS_MIN and retries > RETRIES_MAX:
        said.append(f"{retries:.0%} of the beads need more than one attempt: make prompts more precise, or verify earlier.")
    said += _low("Agent", figures.agents, AGENT_RUNS_MIN, AGENT_MIN, "give its beads to another agent or a stronger model")
    said += _low("Template", figures.templates, TEMPLATE_RUNS_MIN, TEMPLATE_MIN, "rewrite it, or split what it asks for")
    return said


def _low(what: str, groups: dict[str, Tally], runs_min: int, rate_min: float, then: str) -> list[str]:
    found = []
    for name, tally in sorted(groups.items()):
        rate = tally.success_rate
        if rate is not None and tally.ended >= runs_min and rate < rate_min:
            found.append(f"{what} {name} succeeds in {rate:.0%} of {tally.ended} beads, less than {rate_min:.0%}: {then}.")
    return found


def wilson(successes: int, total: int, z: float = Z_95) -> tuple[float | None, float | None]:
    """Return the Wilson score interval of a proportion, at 95 % unless `z` says otherwise; None without observations.

    It says how sure a rate is: three successes of three are no proof of anything.
    """
    if total <= 0:
        return None, None
    share = successes / total
    square = z * z
    centre = (share + square / (2 * total)) / (1 + square / total)
    half = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, centre - half), min(1.0, centre + half)
