"""Reads limits from flags, strictly, and refuses agents that could not be held to them.

The same for every system. Nothing here spends or counts: that is the engine's admission.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_orchestrator.agents import find_agent
from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import read_count, read_duration_s, read_money
from agent_orchestrator.errors import UsageError


def read_flag_budget(given: Mapping[str, Any]) -> Budget:
    """The limits that were really given as flags (`FLAGS`); nothing else is in them."""
    money, count, time = given.get("budget_usd"), given.get("budget_tokens"), given.get("max_time")
    day = given.get("day_budget_usd")
    return Budget(
        run=Amounts(
            cost_usd=None if money is None else read_money(money, "--budget-usd"),
            tokens=None if count is None else read_count(count, "--budget-tokens"),
            wall_s=None if time is None else read_duration_s(time, "--max-time"),
        ),
        day=Amounts(cost_usd=None if day is None else read_money(day, "--day-budget-usd")),
        allow_unmetered=True if given.get("allow_unmetered") else None,
    )


def refuse_unmetered(budget: Budget, choices: Iterable[AgentChoice]) -> None:
    """Raises a UsageError for an agent that does not say what it consumes, where that is limited: unknown is not zero."""
    if budget.allow_unmetered:
        return
    for choice in choices:
        able = abilities_of(choice)
        if budget.limits_cost and "cost" not in able:
            why = f"{choice.name} does not say what it costs, and unknown is not zero"
            raise UsageError(detail=f"The budget cannot be kept: {why}; configure prices for it, or give --allow-unmetered.")
        if budget.limits_tokens and "tokens" not in able:
            why = f"{choice.name} does not say how many tokens it uses, and unknown is not zero"
            raise UsageError(detail=f"The token budget cannot be kept: {why}; give --allow-unmetered to go on without it.")


def abilities_of(choice: AgentChoice) -> frozenset[str]:
    """What an agent can do and says of itself, `cost` and `tokens` among it, with its settings taken into account."""
    adapter = find_agent(choice.performer)
    able: frozenset[str] = getattr(adapter, "abilities", frozenset())
    paths = choice.options.get("usage") if choice.options.get("output") == "json-lines" else None
    if isinstance(paths, dict):
        able |= {"cost"} if "cost_usd" in paths else set()
        able |= {"tokens"} if {"input", "output"} <= paths.keys() else set()
    return able | {"cost"} if choice.options.get("prices") and "tokens" in able else able
